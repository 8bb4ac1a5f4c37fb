// SPDX-License-Identifier: Apache-2.0
// `welkin predict`: fields (HDF5) and pictures (PNG) of some samples: input, target, prediction, difference, by one replica of
// the model. With --mosaic: a whole box from overlapping crops, on any number of ranks.
#include <unistd.h>

#include <ostream>
#include <sstream>

#include "apps/cli/flags.h"
#include "apps/cli/rank_run.h"
#include "apps/cli/trained_run.h"
#include "apps/cli/verbs.h"
#include "observe/image/animation.h"
#include "observe/log/console.h"
#include "observe/log/progress.h"
#include "train/evaluate/forecast_files.h"
#include "train/mosaic/mosaic_run.h"

namespace welkin::apps {
namespace {

std::vector<std::string> parse_list(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream parts(text);
  for (std::string name; std::getline(parts, name, ',');) names.push_back(name);
  return names;
}

// Rejects flags of the other kind of output.
void check_kind(const config::CommandLine& line, bool is_mosaic) {
  if (!is_mosaic && line.extra.contains("overlap"))
    throw ConfigError("predict", "this flag belongs to --mosaic: --overlap", "Give --mosaic FILE, or leave it out");
  for (const char* flag : {"output", "samples", "rollout_steps", "animate"}) {
    if (!is_mosaic || !line.extra.contains(flag)) continue;
    throw ConfigError("predict", cat("this flag belongs to predictions of samples: --mosaic, --", flag),
                      "Leave one of them out; --mosaic names its own output");
  }
}

void make_mosaic(Application& application, TrainedRun& run, const launch::RankInfo& place) {
  const train::MosaicOptions options{.output = text_flag(run.line, "mosaic"),
                                     .overlap = whole_flag(run.line, "overlap", run.config.data.data_size / 4, 0),
                                     .channels = parse_list(text_flag(run.line, "channels"))};
  parallel::World world = join_ranks(run, place, application.err);
  observe::Console console({.fd = world.is_main() ? STDERR_FILENO : -1});
  observe::Progress progress(console, {.title = "mosaic", .unit = "crops", .now_s = {}});
  run_as_rank(world, [&] {
    with_trained_model(application, run, [&](const train::TrainedModel& model) {
      const auto written = train::predict_mosaic(model, options, world, [&](int64_t done, int64_t) { progress.update(done); });
      progress.finish();
      if (!world.is_main()) return;
      application.out << "checkpoint " << model.checkpoint().string() << ", step " << model.step() << "\n";
      for (const auto& path : written) application.out << path.string() << "\n";
    });
  });
}

// A few samples are not worth sharing out: the ranks are those of one replica.
void check_one_replica(const TrainedRun& run, const launch::RankInfo& place) {
  const int64_t needed = run.config.parallel.model_size();
  if (needed == 1) need_one_process("predict");
  if (place.world_size == needed) return;
  throw ConfigError("predict",
                    cat("one replica of the model makes these samples: ranks=", place.world_size, ", of a replica=", needed),
                    "Start as many ranks as the layout divides the model into");
}

void make_predictions(Application& application, TrainedRun& run, const launch::RankInfo& place) {
  train::ForecastOptions options{.folder = text_flag(run.line, "output", run.choice.run_folder / "predictions"),
                                 .num_samples = whole_flag(run.line, "samples", 4),
                                 .rollout_steps = whole_flag(run.line, "rollout_steps", 1),
                                 .channels = parse_list(text_flag(run.line, "channels"))};
  if (has_flag(run.line, "animate")) options.animation = observe::image::parse_animation_format(text_flag(run.line, "animate"));
  parallel::World world = join_ranks(run, place, application.err);
  run_as_rank(world, [&] {
    with_trained_model(application, run, [&](const train::TrainedModel& model) {
      const auto written = train::write_forecasts(model, options);
      application.out << "checkpoint " << model.checkpoint().string() << ", step " << model.step() << "\n";
      for (const auto& path : written) application.out << path.string() << "\n";
    });
  });
}

}  // namespace

int verb_predict(Application& given, int argc, char** argv) {
  const launch::RankInfo place = this_rank_info();
  label_process(place);
  std::ostream nowhere(nullptr);
  Application silent{.out = nowhere, .err = nowhere, .registries = given.registries};
  Application& application = place.rank == 0 ? given : silent;  // the first rank speaks for all
  auto run = parse_trained_run(
      application, argc, argv,
      {{"output", "FOLDER", "output folder (default: predictions/ of the run folder)"},
       {"samples", "N", "number of samples, evenly spread over the data (default: 4)"},
       {"channels", "A,B", "channels of the pictures (default: the first)"},
       {"rollout_steps", "N", "feed each prediction back as input, N times in all"},
       {"animate", "FORMAT", "also animate the leads of --rollout_steps: apng, or with ffmpeg gif or mp4"},
       {"mosaic", "FILE", "write the whole box instead, as NAME.zarr or NAME.nc, from overlapping crops", config::Listed::InFull},
       {"overlap", "N", "with --mosaic: cells that neighbouring crops share (default: a quarter of a crop)",
        config::Listed::InFull}},
      "", place.world_size);
  if (!run) return 0;
  const bool is_mosaic = has_flag(run->line, "mosaic");
  check_kind(run->line, is_mosaic);
  if (!is_mosaic) check_one_replica(*run, place);
  check_ranks("predict", *run, place);
  is_mosaic ? make_mosaic(application, *run, place) : make_predictions(application, *run, place);
  return 0;
}

}  // namespace welkin::apps
