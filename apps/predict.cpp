// SPDX-License-Identifier: Apache-2.0
// `welkin predict`: fields (HDF5) and pictures (PNG) of some samples: input, target, prediction, difference. With --mosaic: a
// whole box from overlapping crops, on any number of ranks.
#include <unistd.h>

#include <optional>
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

void make_mosaic(Application& application, const TrainedRun& run) {
  const train::MosaicOptions options{.output = text_flag(run.line, "mosaic"),
                                     .overlap = whole_flag(run.line, "overlap", run.config.data.data_size / 4, 0),
                                     .channels = parse_list(text_flag(run.line, "channels"))};
  const launch::RankInfo place = this_rank_info();
  label_process(place);
  TrainedRun own = run;
  own.choice.local_rank = place.local_rank, own.choice.local_size = place.local_size;
  parallel::World world = parallel::World::connect(place, world_options(run.config));
  observe::Console console({.fd = world.is_main() ? STDERR_FILENO : -1});
  observe::Progress progress(console, {.title = "mosaic", .unit = "crops", .now_s = {}});
  run_as_rank(world, [&] {
    with_trained_model(application, own, [&](const train::TrainedModel& model) {
      const auto written = train::predict_mosaic(model, options, world, [&](int64_t done, int64_t) { progress.update(done); });
      progress.finish();
      if (!world.is_main()) return;
      application.out << "checkpoint " << model.checkpoint().string() << ", step " << model.step() << "\n";
      for (const auto& path : written) application.out << path.string() << "\n";
    });
  });
}

}  // namespace

int verb_predict(Application& application, int argc, char** argv) {
  const auto run = parse_trained_run(
      application, argc, argv,
      {{"output", "FOLDER", "output folder (default: predictions/ of the run folder)"},
       {"samples", "N", "number of samples, evenly spread over the data (default: 4)"},
       {"channels", "A,B", "channels of the pictures (default: the first)"},
       {"rollout_steps", "N", "feed each prediction back as input, N times in all"},
       {"animate", "FORMAT", "also animate the leads of --rollout_steps: apng, or with ffmpeg gif or mp4"},
       {"mosaic", "FILE", "write the whole box instead, as NAME.zarr or NAME.nc, from overlapping crops", config::Listed::InFull},
       {"overlap", "N", "with --mosaic: cells that neighbouring crops share (default: a quarter of a crop)",
        config::Listed::InFull}});
  if (!run) return 0;
  if (has_flag(run->line, "mosaic")) {
    make_mosaic(application, *run);
    return 0;
  }
  need_one_process("predict");
  std::optional<observe::image::AnimationFormat> animation;
  if (has_flag(run->line, "animate")) animation = observe::image::parse_animation_format(text_flag(run->line, "animate"));
  const int64_t num_samples = whole_flag(run->line, "samples", 4), rollout_steps = whole_flag(run->line, "rollout_steps", 1);
  with_trained_model(application, *run, [&](const train::TrainedModel& model) {
    const auto written =
        train::write_forecasts(model, {.folder = text_flag(run->line, "output", run->choice.run_folder / "predictions"),
                                       .num_samples = num_samples,
                                       .rollout_steps = rollout_steps,
                                       .channels = parse_list(text_flag(run->line, "channels")),
                                       .animation = animation});
    application.out << "checkpoint " << model.checkpoint().string() << ", step " << model.step() << "\n";
    for (const auto& path : written) application.out << path.string() << "\n";
  });
  return 0;
}

}  // namespace welkin::apps
