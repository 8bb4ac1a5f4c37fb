// SPDX-License-Identifier: Apache-2.0
// `welkin predict`: fields (HDF5) and pictures (PNG) of some samples: input, target, prediction, difference.
#include <charconv>
#include <ostream>
#include <sstream>

#include "core/error.h"
#include "core/text.h"
#include "train/forecast_files.h"
#include "trained_run.h"
#include "verbs.h"

namespace welkin::apps {
namespace {

int64_t parse_count(const std::string& text) {
  int64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  if (error == std::errc() && rest == end && count > 0) return count;
  throw ConfigError("welkin predict", cat("not a number of samples: samples=", text), "Give a positive integer");
}

std::vector<std::string> parse_list(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream parts(text);
  for (std::string name; std::getline(parts, name, ',');) names.push_back(name);
  return names;
}

}  // namespace

int verb_predict(Application& application, int argc, char** argv) {
  const auto run = parse_trained_run(application, argc, argv,
                                     {{"output", "FOLDER", "where to write; predictions/ of the run folder when not given"},
                                      {"samples", "N", "how many samples, evenly spread over the data; 4 when not given"},
                                      {"channels", "A,B", "channels of the pictures; the first when not given"}});
  if (!run) return 0;
  const train::TrainedModel model(application.registries, run->config, run->choice);
  const auto written = train::write_forecasts(model, {.folder = extra_or(*run, "output", run->choice.run_folder / "predictions"),
                                                      .num_samples = parse_count(extra_or(*run, "samples", "4")),
                                                      .channels = parse_list(extra_or(*run, "channels", ""))});
  application.out << "checkpoint " << model.checkpoint().string() << ", step " << model.step() << "\n";
  for (const auto& path : written) application.out << path.string() << "\n";
  return 0;
}

}  // namespace welkin::apps
