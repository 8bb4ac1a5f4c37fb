// SPDX-License-Identifier: Apache-2.0
#include "apps/evaluate/forecast_scores.h"

#include <optional>
#include <ostream>

#include "apps/cli/flags.h"
#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "data/forecast/climatology.h"
#include "data/forecast/field_states.h"
#include "data/forecast/forecast_file.h"
#include "data/forecast/forecast_layout.h"
#include "observe/log/console.h"
#include "observe/log/progress.h"
#include "train/skill/skill_plots.h"
#include "train/skill/skill_report.h"
#include "train/skill/skill_run.h"

namespace welkin::apps {

const std::vector<config::ExtraFlag>& forecast_score_flags() {
  static const std::vector<config::ExtraFlag> flags = {
      {"forecast", "FILE", "score this file of welkin forecast by lead, instead of the model"},
      {"second", "FILE", "with --forecast: second forecast with the same leads, for paired differences over common starts",
       config::Listed::InFull},
      {"climatology", "FILE", "with --forecast: output of welkin data climatology, for ACC, events and as a baseline",
       config::Listed::InFull},
      {"states", "FOLDER", "with --forecast: folder of the true states; default: the part of the run's data that --split names",
       config::Listed::InFull},
      {"regions", "A,B", "with --forecast: global (default), tropics, nh, sh, or boxes such as europe=35:75:-12.5:42.5",
       config::Listed::InFull},
      {"bootstrap", "N", "with --forecast: bootstrap resamples of the starts for confidence intervals; 0: none (default: 200)",
       config::Listed::InFull},
      {"bootstrap_block", "N", "with --forecast: neighbouring starts per bootstrap block (default: 1)", config::Listed::InFull},
      {"plots", "FOLDER",
       "with --forecast: curves by lead, spectra, ranks, reliability, maps of the error and a scorecard; with --box_statistics: "
       "its curves",
       config::Listed::InFull}};
  return flags;
}

void evaluate_forecast(Application& application, const TrainedRun& run) {
  const config::CommandLine& line = run.line;
  const auto regions = train::parse_regions(text_flag(line, "regions", "global"));
  const train::Confidence confidence{.replicates = whole_flag(line, "bootstrap", 200, 0, 100'000),
                                     .block = whole_flag(line, "bootstrap_block", 1, 1, 1 << 20),
                                     .seed = run.config.loop.seed};
  // The forecast gives the times, so a folder of one state is enough.
  const data::FieldStates truth(run.config, run.choice.split, text_flag(line, "states"), data::TimeStep{.seconds = 1});
  data::ForecastFile forecast(text_flag(line, "forecast"));
  std::optional<data::ForecastFile> second;
  std::optional<data::Climatology> climatology;
  if (const std::string file = text_flag(line, "second"); !file.empty()) second.emplace(file);
  if (const std::string file = text_flag(line, "climatology"); !file.empty()) climatology.emplace(file);
  const auto names = data::variable_names(truth.spec().target.channels);
  forecast.fit(truth.spec(), names);
  if (second) second->fit(truth.spec(), names);
  if (climatology) climatology->fit(truth.spec(), names, {forecast.latitude(), forecast.longitude()});
  observe::Console console;
  observe::Progress progress(
      console, {.title = "evaluate", .total = static_cast<int64_t>(forecast.starts().size()), .unit = "starts", .now_s = {}});
  const train::Skill skill = train::score_forecast({.truth = truth,
                                                    .forecast = forecast,
                                                    .second = second ? &*second : nullptr,
                                                    .climatology = climatology ? &*climatology : nullptr},
                                                   regions, [&](int64_t done) { progress.update(done); });
  progress.finish();
  application.out << forecast.path().string() << ", " << skill.num_starts << " starts, " << forecast.members()
                  << " members, region " << skill.regions.front() << "\n"
                  << train::skill_table_text(skill);
  for (const std::string& note : train::skill_notes(skill)) application.out << note << ".\n";
  if (const std::string file = text_flag(line, "json"); !file.empty())
    write_file_atomically(file, train::skill_json(skill, confidence));
  const std::string folder = text_flag(line, "plots");
  if (folder.empty()) return;
  const auto map = observe::image::map_frame(forecast.latitude(), forecast.longitude());
  for (const auto& path : train::write_skill_plots(skill, confidence, map, folder)) application.out << path.string() << "\n";
}

}  // namespace welkin::apps
