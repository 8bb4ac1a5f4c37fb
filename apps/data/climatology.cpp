// SPDX-License-Identifier: Apache-2.0
// `welkin data climatology`: mean fields by day of the year and hour of the day, for scores of anomalies.
#include "data/forecast/climatology.h"

#include <ostream>

#include "apps/cli/flags.h"
#include "apps/cli/rank_run.h"
#include "apps/cli/trained_run.h"
#include "apps/cli/verbs.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::apps {
namespace {

const std::vector<config::ExtraFlag> kClimatologyFlags = {
    {"output", "FILE", "file to write, NAME.zarr or NAME.nc; must not exist"},
    {"states", "FOLDER", "folder of the years' files; default: the part of the run's data that --split names"},
    {"window", "DAYS", "odd number of days to average around each day of the year (default: 61)"}};

}  // namespace

int verb_data_climatology(Application& application, int argc, char** argv) {
  const auto run = parse_trained_run(application, argc, argv, kClimatologyFlags);
  if (!run) return 0;
  const data::ClimatologyOptions options{.output = text_flag(run->line, "output"),
                                         .window = whole_flag(run->line, "window", 61, 1, 365)};
  need_one_process("data climatology");
  if (options.output.empty())
    throw ConfigError("climatology", "no file is named to write to: --output", "Give --output NAME.zarr or NAME.nc");
  if (options.window % 2 == 0) {
    throw ConfigError("climatology", cat("a window has as many days before a day as behind it: --window=", options.window),
                      cat("Give an odd number, such as ", options.window + 1));
  }
  const data::FieldStates states(run->config, run->choice.split, text_flag(run->line, "states"), data::TimeStep{.seconds = 1});
  data::make_climatology(states, options);
  application.out << states.size() << " states from " << data::format_date(states.calendar(), states.times().front()) << " to "
                  << data::format_date(states.calendar(), states.times().back()) << "\n"
                  << options.output.string() << "\n";
  return 0;
}

}  // namespace welkin::apps
