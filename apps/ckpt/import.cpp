// SPDX-License-Identifier: Apache-2.0
// welkin ckpt import FILE OUT: converts a checkpoint of PyTorch to a Welkin checkpoint.
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "apps/cli/flags.h"
#include "apps/cli/help.h"
#include "apps/cli/verbs.h"
#include "config/flags/command_line.h"
#include "config/print/print.h"
#include "config/resolve/resolve.h"
#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "train/interchange/import_state.h"
#include "train/learn/registries.h"

namespace welkin::apps {
namespace {

namespace fs = std::filesystem;
namespace interchange = train::interchange;

const std::vector<config::ExtraFlag> kFlags = {
    {"key", "NAME", "key of the model's state dict in the file; default: detected"},
    {"run", "", "OUT is a run folder: write OUT/checkpoints/step_N and OUT/config.yaml, for evaluate and train --resume"},
    {"as_stored", "", "keep the element types; default: floating-point tensors become float32, as training needs"},
    {"weights_only", "", "do not import the optimizer's state"}};

// The configuration of the run as text, if one was named.
std::string config_text(const Application& application, const config::CommandLine& line) {
  if (!line.yaml_config && line.tutorial == config::Tutorial::None) return {};
  return config::yaml(config::resolve(line, kWorldSize, application.registries.known_names()).config);
}

fs::path target_of(const fs::path& out, bool is_run, const interchange::State& state, const interchange::ImportOptions& options) {
  if (!is_run) return out;
  return out / "checkpoints" / cat("step_", interchange::imported_iteration(state, options));
}

}  // namespace

int verb_ckpt_import(Application& application, int argc, char** argv) {
  std::vector<const char*> words(argv, argv + argc);
  std::vector<std::string> paths;
  while (words.size() > 1 && paths.size() < 2 && words[1][0] != '-') {
    paths.emplace_back(words[1]);
    words.erase(words.begin() + 1);
  }
  const config::CommandLine line = config::parse(static_cast<int>(words.size()), words.data(), kFlags);
  if (line.help != config::Help::Off) {
    print_help(application,
               {.program = argv[0],
                .usage = {"FILE OUT [flags]", "FILE OUT --yaml_config FILE [--config PRESET] [flags]"},
                .extra = kFlags},
               line.help);
    return 0;
  }
  if (paths.size() != 2) {
    throw ConfigError(argv[0], cat("takes a file and the folder to make: given=", paths.size()),
                      "Write welkin ckpt import FILE OUT, then the flags");
  }
  interchange::ImportOptions options{
      .as_stored = has_flag(line, "as_stored"), .optimizer = !has_flag(line, "weights_only"), .config = {}};
  options.config = config_text(application, line);
  const bool is_run = has_flag(line, "run");
  const auto state = interchange::open_state(paths[0], {.key = text_flag(line, "key"), .checkpoint = "best"});
  const fs::path target = target_of(paths[1], is_run, state, options);
  const interchange::ImportReport report = interchange::import_state(state, options, target);
  const fs::path config_file = fs::path(paths[1]) / "config.yaml";
  if (is_run && !options.config.empty() && !fs::exists(config_file)) write_file_atomically(config_file, options.config);
  for (const std::string& note : report.notes) application.err << "note: " << note << "\n";
  application.out << paths[0] << " -> " << target.string() << ": " << report.model_tensors << " tensors of the model, "
                  << report.optimizer_tensors << " of the optimizer, step " << report.iteration << "\n";
  return 0;
}

}  // namespace welkin::apps
