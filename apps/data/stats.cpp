// SPDX-License-Identifier: Apache-2.0
// welkin data stats DIR --out DIR: means and deviations of training files, or of an archive of variables.
#include <CLI/CLI.hpp>
#include <ostream>
#include <string>

#include "apps/cli/verbs.h"
#include "core/text.h"
#include "data/tools/statistics.h"
#include "observe/log/table.h"

namespace welkin::apps {
namespace {

std::string statistics_table(const data::FolderStatistics& statistics) {
  using observe::Align;
  observe::Table table(
      {{"channel"}, {"mean", Align::Right}, {"std", Align::Right}, {"min", Align::Right}, {"max", Align::Right}});
  for (size_t c = 0; c < statistics.channels.size(); ++c) {
    const auto& moments = statistics.moments[c];
    table.add_row({statistics.channels[c], cat(moments.mean()), cat(moments.std()), cat(moments.min()), cat(moments.max())});
  }
  return table.text();
}

// Empty where no value is missing.
std::string missing_text(const data::FolderStatistics& statistics) {
  std::string text;
  for (size_t c = 0; c < statistics.channels.size(); ++c) {
    const auto& moments = statistics.moments[c];
    if (moments.num_nonfinite() == 0) continue;
    text += cat("missing values left out: channel=", statistics.channels[c], ", values=", moments.num_nonfinite(), " of ",
                moments.num_nonfinite() + moments.count(), "\n");
  }
  return text;
}

}  // namespace

int verb_data_stats(Application& application, int argc, char** argv) {
  CLI::App app(
      "Computes global_means.npy, global_stds.npy, global_mins.npy, global_maxs.npy and time_means.npy over all *.h5 files of a "
      "folder");
  std::string folder, out;
  bool allow_constant = false;
  data::StatisticsOptions options;
  app.add_option("DIR", folder, "folder of training files (dataset fields), or an archive of variables")->required();
  app.add_option("--out", out, "output folder for the statistics")->type_name("DIR")->required();
  app.add_flag("--allow-constant", allow_constant, "write 1 as the standard deviation of a channel that never changes");
  app.add_flag("--climatology", options.climatology, "also write climatology.npy, the mean map of each calendar month");
  app.add_option("--variables", options.variables, "archive with an array for each variable: variables to use as channels")
      ->type_name("V,V")
      ->delimiter(',');
  app.add_option("--levels", options.levels, "archive: levels of the variables named without one")
      ->type_name("L,L")
      ->delimiter(',');
  app.add_option("--times", options.times, "archive: first and last date, as in 1979,2015")->type_name("A,B")->delimiter(',');
  app.add_option("--time-units", options.time.units, "units of times in files that do not give them, for --climatology");
  app.add_option("--time-calendar", options.time.calendar, "CF calendar of times in files that do not give it");
  app.add_option("--threads", options.num_threads, "threads; 0 = the cores of this process")->check(CLI::Range(0, 4096));
  if (!parse_arguments(application, app, argc, argv)) return 0;
  const data::FolderStatistics statistics = data::compute_statistics(folder, options);
  data::write_statistics(statistics, out, allow_constant);
  for (const std::string& line : statistics.warnings()) application.err << "warning: " << line << "\n";
  application.out << statistics_table(statistics) << missing_text(statistics) << statistics.steps << " steps of "
                  << statistics.num_files << " files -> " << out << "\n";
  return 0;
}

}  // namespace welkin::apps
