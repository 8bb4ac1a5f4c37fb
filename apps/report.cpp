// SPDX-License-Identifier: Apache-2.0
// welkin report RUN...: curves and costs of runs side by side, as a table and as one HTML page.
#include <CLI/CLI.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "apps/cli/verbs.h"
#include "core/file.h"
#include "core/text.h"
#include "observe/report/run_report.h"

namespace welkin::apps {

int verb_report(Application& application, int argc, char** argv) {
  CLI::App app(
      "Reads TensorBoard event files of runs, ours or the tutorials', and writes their curves by step, relative wall time and "
      "samples into one HTML page; prints samples/s, time and GPU-hours to a target score");
  std::vector<std::string> arguments;
  observe::ReportOptions options;
  std::string output = "report.html", json;
  int64_t devices = 0, batch = 0;
  app.add_option("RUN", arguments, "event file, run folder or a folder above, as PATH or LABEL=PATH")->required();
  app.add_option("--output", output, "the page")->type_name("FILE")->capture_default_str();
  app.add_option("--json", json, "write the table as JSON to this file; - prints it instead of the text")->type_name("FILE");
  app.add_option("--score", options.score, "tag of which less is better")->capture_default_str();
  app.add_option("--target", options.target, "of the score; without it the best that all runs reach");
  app.add_option("--devices", devices, "of runs whose folder does not say it as <W>GPU")->check(CLI::PositiveNumber);
  app.add_option("--batch", batch, "samples of a step of runs without an out.log")->check(CLI::PositiveNumber);
  if (!parse_arguments(application, app, argc, argv)) return 0;
  std::vector<observe::RunHistory> runs;
  for (const std::string& argument : arguments) {
    for (observe::RunHistory& run : observe::read_runs(argument)) {
      if (!run.devices && devices > 0) run.devices = devices;
      if (!run.global_batch && batch > 0) run.global_batch = batch;
      if (run.scalars.is_cut) application.err << "note: the last record is not whole yet: run=" << run.label << "\n";
      runs.push_back(std::move(run));
    }
  }
  const observe::RunComparison comparison = observe::compare_runs(runs, options);
  write_file_atomically(output, observe::comparison_html(comparison, runs));
  if (!json.empty() && json != "-") write_file_atomically(json, observe::comparison_json(comparison));
  if (json == "-") {
    application.out << observe::comparison_json(comparison);
  } else {
    application.out << observe::comparison_text(comparison) << "page: " << output << "\n";
  }
  return 0;
}

}  // namespace welkin::apps
