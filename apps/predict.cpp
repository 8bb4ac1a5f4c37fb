// SPDX-License-Identifier: Apache-2.0
// `welkin predict`: fields (HDF5) and pictures (PNG) of some samples: input, target, prediction, difference.
#include <ostream>
#include <sstream>

#include "apps/cli/flags.h"
#include "apps/cli/trained_run.h"
#include "apps/cli/verbs.h"
#include "train/evaluate/forecast_files.h"

namespace welkin::apps {
namespace {

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
                                      {"channels", "A,B", "channels of the pictures; the first when not given"},
                                      {"rollout_steps", "N", "feed each prediction back as input, N times in all"}});
  if (!run) return 0;
  const int64_t num_samples = whole_flag(run->line, "samples", 4), rollout_steps = whole_flag(run->line, "rollout_steps", 1);
  with_trained_model(application, *run, [&](const train::TrainedModel& model) {
    const auto written =
        train::write_forecasts(model, {.folder = text_flag(run->line, "output", run->choice.run_folder / "predictions"),
                                       .num_samples = num_samples,
                                       .rollout_steps = rollout_steps,
                                       .channels = parse_list(text_flag(run->line, "channels"))});
    application.out << "checkpoint " << model.checkpoint().string() << ", step " << model.step() << "\n";
    for (const auto& path : written) application.out << path.string() << "\n";
  });
  return 0;
}

}  // namespace welkin::apps
