// SPDX-License-Identifier: Apache-2.0
// `welkin evaluate`: scores of a checkpoint beside persistence and the time-mean map, as a table and as JSON. With
// --rollout_steps: scores for each lead of a rollout. With --forecast: scores of a forecast file.
#include <algorithm>
#include <iterator>
#include <ostream>

#include "apps/cli/flags.h"
#include "apps/cli/rank_run.h"
#include "apps/cli/trained_run.h"
#include "apps/cli/verbs.h"
#include "apps/evaluate/forecast_scores.h"
#include "apps/evaluate/model_scores.h"
#include "core/error.h"
#include "core/file.h"
#include "core/output_check.h"
#include "core/text.h"
#include "parallel/comm/world.h"
#include "train/evaluate/time_mean.h"

namespace welkin::apps {
namespace {

// Names at most the first samples: they lead to the file.
void warn_of_nonfinite(Application& application, const TrainedRun& run, const std::vector<int64_t>& samples) {
  if (samples.empty()) return;
  constexpr size_t kMost = 5;
  const std::vector<int64_t> first(samples.begin(), samples.begin() + static_cast<ptrdiff_t>(std::min(kMost, samples.size())));
  application.err << "warning: the loss is not finite: samples=" << samples.size() << ", first=[" << join(first, ", ")
                  << "], nan_policy=" << name_of(run.config.data.nan_policy)
                  << ". Look for NaN in the data with nan_policy report.\n"
                  << std::flush;
}

// Explains why the column ACC of fields has no numbers.
std::string missing_time_mean(const std::string& path) {
  const std::string reason = path.empty() ? "time_means_path is not set" : cat("there is no such file: time_means_path=", path);
  return cat("No ACC: anomalies are from the map of time means, and ", reason, ". Write one with welkin data stats.\n");
}

// `speaks`: true on the first rank. All ranks have the scores.
void evaluate(Application& application, const TrainedRun& run, int64_t rollout_steps, bool speaks,
              const train::TrainedModel& model) {
  const at::Tensor time_mean = train::read_time_mean(run.config.data.time_means_path, model.dataset().spec());
  const ScoresText scores = score(model, time_mean, rollout_steps, speaks);
  application.out << "checkpoint " << model.checkpoint().string() << ", step " << model.step() << ", " << scores.samples
                  << (rollout_steps == 1 ? " samples\n" : " starts\n") << scores.table;
  if (!time_mean.defined() && model.dataset().spec().target.shape.size() == 3)
    application.out << missing_time_mean(run.config.data.time_means_path);
  warn_of_nonfinite(application, run, scores.nonfinite);
  if (const std::string file = text_flag(run.line, "json"); speaks && !file.empty()) {
    write_file_atomically(file, scores.json);
  }
  if (const std::string file = text_flag(run.line, "box_statistics"); !file.empty()) {
    write_box_statistics(application, model, file, text_flag(run.line, "plots"), speaks);
  }
}

// Rejects flags that need --forecast.
void check_alone(const config::CommandLine& line) {
  for (const config::ExtraFlag& flag : forecast_score_flags()) {
    const bool is_of_boxes = flag.name == std::string_view("plots") && line.extra.contains("box_statistics");
    if (!line.extra.contains(flag.name) || is_of_boxes) continue;
    throw ConfigError("evaluate", cat("this flag belongs to --forecast: --", flag.name), "Give --forecast FILE, or leave it out");
  }
}

// Rejects flags that need a model: with --forecast none is read.
void check_without_model(const config::CommandLine& line) {
  for (const char* flag : {"rollout_steps", "box_statistics", "checkpoint", "ema"}) {
    if (!line.extra.contains(flag)) continue;
    throw ConfigError("evaluate", cat("the scores of a file need no model: --forecast, --", flag),
                      "Leave one of them out; a file is scored at the leads that it holds");
  }
}

// `err`: every rank writes warnings about its own samples.
void evaluate_on(Application& application, std::ostream& err, TrainedRun& run, int64_t rollout_steps,
                 const launch::RankInfo& place) {
  const bool speaks = place.rank == 0;
  parallel::World world = join_ranks(run, place, err);
  run_as_rank(world, [&] {
    with_trained_model(application, run,
                       [&](const train::TrainedModel& model) { evaluate(application, run, rollout_steps, speaks, model); });
  });
}

}  // namespace

int verb_evaluate(Application& given, int argc, char** argv) {
  std::vector<config::ExtraFlag> flags = {
      {"json", "FILE", "also write the scores to this file"},
      {"rollout_steps", "N", "score leads 1 to N, with each prediction as the next input (default: 1)"},
      {"box_statistics", "FILE",
       "boxes: write spectra, correlation, bispectrum, distribution and peaks beside the target's, as JSON",
       config::Listed::InFull}};
  std::ranges::copy(forecast_score_flags(), std::back_inserter(flags));
  const launch::RankInfo place = this_rank_info();
  label_process(place);
  std::ostream nowhere(nullptr);
  Application silent{.out = nowhere, .err = nowhere, .registries = given.registries};
  Application& application = place.rank == 0 ? given : silent;  // the first rank speaks for all
  auto run = parse_trained_run(application, argc, argv, std::move(flags), "", place.world_size);
  if (!run) return 0;
  if (has_flag(run->line, "forecast")) {
    need_one_process("evaluate --forecast");
    check_without_model(run->line);
  }
  check_ranks("evaluate", *run, place);
  const int64_t rollout_steps = whole_flag(run->line, "rollout_steps", 1);
  if (const std::string file = text_flag(run->line, "json"); !file.empty()) check_output("evaluate", "--json", file);
  if (has_flag(run->line, "forecast")) {
    evaluate_forecast(application, *run);
    return 0;
  }
  check_alone(run->line);
  evaluate_on(application, given.err, *run, rollout_steps, place);
  return 0;
}

}  // namespace welkin::apps
