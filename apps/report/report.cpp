// SPDX-License-Identifier: Apache-2.0
// welkin report RUN...: compares curves and costs of runs, as a table and as one HTML page, once or while they go on.
#include <CLI/CLI.hpp>
#include <cmath>
#include <ostream>

#include "apps/cli/application.h"
#include "apps/cli/verbs.h"
#include "apps/report/report_page.h"
#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "observe/report/run_report.h"

namespace welkin::apps {
int verb_report(Application& application, int argc, char** argv) {
  CLI::App app(
      "Reads TensorBoard event files of runs, ours or the tutorials', with what else their folders hold, and writes one HTML "
      "page "
      "that needs no network: curves by step, relative wall time and samples with zoom, configuration differences, timeline, "
      "scores, pictures, events; prints samples/s, time and GPU-hours to a target score");
  ReportRequest request;
  app.add_option("RUN", request.runs, "event file, run folder or a folder above, as PATH or LABEL=PATH")->required();
  app.add_option("--output", request.output, "HTML page to write")->type_name("FILE")->capture_default_str();
  app.add_option("--json", request.json, "write the table as JSON to this file; - prints it instead of the text")
      ->type_name("FILE");
  app.add_option("--score", request.options.score, "tag of the score; less is better")->capture_default_str();
  app.add_option("--target", request.options.target, "target of the score; default: the best that all runs reach");
  app.add_option("--devices", request.devices, "devices of runs whose folder is not named <W>GPU")->check(CLI::PositiveNumber);
  app.add_option("--batch", request.batch, "samples per step of runs without an out.log")->check(CLI::PositiveNumber);
  app.add_option("--scores", request.scores, "files of welkin evaluate --json for the page, as PATH or LABEL=PATH")
      ->type_name("FILE");
  app.add_option("--mlflow", request.mlflow, "also write the runs as an MLflow file store below this folder")
      ->type_name("FOLDER");
  app.add_option("--wandb", request.wandb, "also write the runs as offline runs of Weights & Biases below this folder")
      ->type_name("FOLDER");
  app.add_flag("--live", request.is_live, "rewrite the page while the runs go on; an open page follows");
  app.add_option("--interval", request.interval_s, "with --live: seconds between updates")
      ->check(CLI::Range(0.5, 3600.0))
      ->capture_default_str();
  if (!parse_arguments(application, app, argc, argv)) return 0;
  if (request.options.target && !std::isfinite(*request.options.target)) {
    throw ConfigError("report", cat("the target is no number that a score could reach: target=", *request.options.target),
                      "Give a finite --target, or none: then it is the best that all runs reach");
  }
  bool has_ended = false;
  const observe::RunComparison comparison =
      request.is_live ? follow_runs(application, request) : write_page(application, request, false, has_ended);
  if (!request.json.empty() && request.json != "-") write_file_atomically(request.json, observe::comparison_json(comparison));
  if (request.json == "-") {
    application.out << observe::comparison_json(comparison);
  } else {
    application.out << observe::comparison_text(comparison) << "page: " << request.output.string() << "\n";
  }
  return 0;
}

}  // namespace welkin::apps
