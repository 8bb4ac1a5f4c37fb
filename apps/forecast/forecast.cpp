// SPDX-License-Identifier: Apache-2.0
// `welkin forecast`: ensembles from states without a truth, as Zarr or netCDF with CF metadata, on any number of ranks.
#include <unistd.h>

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "apps/cli/flags.h"
#include "apps/cli/rank_run.h"
#include "apps/cli/trained_run.h"
#include "apps/cli/verbs.h"
#include "apps/forecast/ensemble_models.h"
#include "core/error.h"
#include "core/text.h"
#include "observe/log/console.h"
#include "observe/log/progress.h"
#include "train/forecast/forecast_movie.h"
#include "train/forecast/forecast_run.h"
#include "train/learn/registries.h"
#include "version.h"

namespace welkin::apps {
namespace {

const std::vector<config::ExtraFlag> kForecastFlags = {
    {"from", "TIME", "where to start: newest (default), all, or dates such as 2019-03-25T06,2019-03-26T06"},
    {"steps", "N", "number of steps (default: 1)"},
    {"members", "M", "number of ensemble members (default: 1)"},
    {"output", "FILE", "file to write, NAME.zarr or NAME.nc; must not exist"},
    {"states", "FOLDER", "folder of the initial states; default: the part of the run's data that --split names"},
    {"forcings", "FOLDER", "folder of the forcing channels at the forecast's times; default: that of the states"},
    {"time_step", "TIME", "time between two states, for instance 6h, if the files hold a single state", config::Listed::InFull},
    {"perturb", "HOW",
     "initial perturbations of members: gaussian:amplitude=0.05, sphere:amplitude=0.05,length_km=500, "
     "bred:amplitude=0.05,cycles=8, or lagged; amplitudes in standard deviations"},
    {"control", "", "member 0 is not perturbed", config::Listed::InFull},
    {"ensemble_seed", "N", "seed of the perturbations and of dropout (default: the run's seed)", config::Listed::InFull},
    {"with_dropout", "", "also vary members by dropout, as in training", config::Listed::InFull},
    {"animate", "FORMAT",
     "also animate the leads: apng, or with ffmpeg gif or mp4; first start only, for an ensemble mean and spread"},
    {"channels", "A,B", "channels of --animate (default: the first)", config::Listed::InFull},
    {"checkpoints", "A,B", "several checkpoints instead of --checkpoint: member m uses number m modulo their count"}};

// Rejects flags that these others leave without an effect.
void check_effects(const config::CommandLine& line, const train::EnsembleOptions& options) {
  const train::PerturbationKind kind = options.ensemble.perturbation.kind;
  const bool is_drawn = options.ensemble.perturbation.is_noise() || kind == train::PerturbationKind::Bred;
  const auto refuse = [](const std::string& problem, const char* remedy) { throw ConfigError("forecast", problem, remedy); };
  if (options.ensemble.has_control && !is_drawn)
    refuse("no perturbation that member 0 could do without: --control",
           "Give --perturb gaussian, sphere or bred, or leave it out");
  if (options.members == 1 && (options.ensemble.has_control || kind == train::PerturbationKind::Lagged)) {
    refuse(cat("the only member is not perturbed: members=1, --perturb=", text_flag(line, "perturb"),
               options.ensemble.has_control ? ", --control" : ""),
           "Ask for more --members, or leave the perturbation out");
  }
  if (line.extra.contains("ensemble_seed") && !is_drawn && !options.has_dropout)
    refuse("nothing is drawn at random: --ensemble_seed",
           "Give --perturb gaussian, sphere or bred, or --with_dropout, or leave it out");
  if (line.extra.contains("channels") && !has_flag(line, "animate"))
    refuse("these are the channels of an animation: --channels",
           "Give --animate FORMAT, or leave it out: the file holds all channels");
  if (line.extra.contains("checkpoints") && line.extra.contains("checkpoint"))
    refuse("two flags name checkpoints: --checkpoint, --checkpoints", "Give only one of them");
}

train::EnsembleOptions forecast_options(const TrainedRun& run) {
  const config::CommandLine& line = run.line;
  train::EnsembleOptions options{.output = text_flag(line, "output"),
                                 .from = text_flag(line, "from", "newest"),
                                 .steps = whole_flag(line, "steps", 1),
                                 .members = whole_flag(line, "members", 1),
                                 .has_dropout = has_flag(line, "with_dropout"),
                                 .source = cat("Welkin ", kVersion),
                                 .inputs = cat("states ", text_flag(line, "states"), ", forcings ", text_flag(line, "forcings"),
                                               ", time step ", text_flag(line, "time_step"), ", ema ", run.choice.averaged,
                                               ", precision ", config::name_of(run.config.precision.amp_mode))};
  options.ensemble = {.perturbation = train::parse_perturbation(text_flag(line, "perturb")),
                      .seed = static_cast<uint64_t>(
                          whole_flag(line, "ensemble_seed", static_cast<int64_t>(run.config.loop.seed), 0, int64_t{1} << 62)),
                      .has_control = has_flag(line, "control")};
  if (options.output.empty())
    throw ConfigError("forecast", "no file is named to write to: --output", "Give --output NAME.zarr or NAME.nc");
  check_effects(line, options);
  return options;
}

std::optional<train::ForecastMovieOptions> movie_options(const TrainedRun& run, const train::EnsembleOptions& options) {
  if (!has_flag(run.line, "animate")) return {};
  return train::ForecastMovieOptions{.forecast = options.output,
                                     .channels = words_between_commas(text_flag(run.line, "channels")),
                                     .format = observe::image::parse_animation_format(text_flag(run.line, "animate"))};
}

void forecast(Application& application, const TrainedRun& run, const train::EnsembleOptions& options,
              const parallel::World& world) {
  const auto movie = movie_options(run, options);
  const EnsembleModels ensemble(application, run, options.has_dropout);
  check_ensemble(options, ensemble.models());
  if (movie) train::check_movie_channels(ensemble.fields().spec(), movie->channels);
  train::ForecastRun made(ensemble.fields(), ensemble.models(), options, world);
  observe::Console console({.fd = world.is_main() ? STDERR_FILENO : -1});
  observe::Progress progress(console, {.title = "forecast", .total = 0, .unit = "times", .now_s = {}});
  const int64_t nonfinite = made.run([&](int64_t done, int64_t) { progress.update(done); });
  progress.finish();
  const double everywhere =
      world.size() == 1 ? static_cast<double>(nonfinite) : summed_over_ranks(world, {static_cast<double>(nonfinite)}).at(0);
  if (!world.is_main()) return;
  for (const train::TrainedModel* model : ensemble.models())
    application.out << "checkpoint " << model->checkpoint().string() << ", step " << model->step() << "\n";
  const data::Calendar calendar = ensemble.fields().calendar();
  application.out << made.starts().size() << " starts from " << data::format_date(calendar, made.starts().front()) << " to "
                  << data::format_date(calendar, made.starts().back()) << ", " << options.steps << " steps, " << options.members
                  << " members\n"
                  << options.output.string() << "\n";
  if (movie) {
    for (const auto& path : train::write_forecast_movies(ensemble.fields().spec(), *movie))
      application.out << path.string() << "\n";
  }
  if (everywhere == 0) return;
  application.err << "warning: members end in values that are not finite: members=" << everywhere
                  << ". Look at their earlier leads, or give a smaller --perturb.\n"
                  << std::flush;
}

}  // namespace

int verb_forecast(Application& application, int argc, char** argv) {
  const launch::RankInfo place = this_rank_info();
  label_process(place);
  auto run = parse_trained_run(application, argc, argv, kForecastFlags, "", place.world_size);
  if (!run) return 0;
  const train::EnsembleOptions options = forecast_options(*run);
  check_ranks("forecast", *run, place);
  parallel::World world = join_ranks(*run, place, application.err);
  run_as_rank(world, [&] { forecast(application, *run, options, world); });
  return 0;
}

}  // namespace welkin::apps
