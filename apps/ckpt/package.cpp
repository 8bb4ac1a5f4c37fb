// SPDX-License-Identifier: Apache-2.0
// welkin ckpt package RUN_FOLDER OUT: copies a trained model and all files that it needs into one folder.
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "apps/cli/flags.h"
#include "apps/cli/trained_run.h"
#include "apps/cli/verbs.h"
#include "core/error.h"
#include "core/text.h"
#include "train/interchange/model_package.h"
#include "version.h"

namespace welkin::apps {
namespace {

const std::vector<config::ExtraFlag> kPackageFlags = {
    {"licence", "NAME", "licence of the weights, as an SPDX identifier: CC-BY-4.0"}, {"note", "TEXT", "a free note, one line"}};

// Removes and returns the second word, if two words stand before the flags; else empty.
std::string take_output(std::vector<char*>& words) {
  if (words.size() < 3 || words[1][0] == '-' || words[2][0] == '-') return {};
  std::string out = words[2];
  words.erase(words.begin() + 2);
  return out;
}

}  // namespace

int verb_ckpt_package(Application& application, int argc, char** argv) {
  std::vector<char*> words(argv, argv + argc);
  const std::string out = take_output(words);
  const auto run = parse_trained_run(application, static_cast<int>(words.size()), words.data(), kPackageFlags, "OUT");
  if (!run) return 0;
  if (out.empty()) {
    throw ConfigError(argv[0], "takes a run folder and the folder to make",
                      "Write welkin ckpt package RUN_FOLDER OUT, then the flags");
  }
  with_trained_model(application, *run, [&](const train::TrainedModel& model) {
    namespace interchange = train::interchange;
    interchange::State state = interchange::open_state(model.checkpoint());
    if (run->choice.averaged) state = interchange::averaged(std::move(state));
    interchange::write_package(
        state, model.dataset().spec(), model.config(),
        {.licence = text_flag(run->line, "licence"), .note = text_flag(run->line, "note"), .maker = cat("welkin ", kVersion)},
        out);
    application.out << model.checkpoint().string() << " -> " << out << ", step " << model.step() << "\n";
  });
  return 0;
}

}  // namespace welkin::apps
