// SPDX-License-Identifier: Apache-2.0
// welkin report RUN...: curves and costs of runs side by side, as a table and as one HTML page, once or while they go on.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "apps/cli/verbs.h"
#include "core/error.h"
#include "core/file.h"
#include "core/process/signals.h"
#include "core/text.h"
#include "observe/log/event_log.h"
#include "observe/report/mlflow_store.h"
#include "observe/report/run_report.h"
#include "observe/report/run_standing.h"
#include "observe/report/tracked_runs.h"
#include "observe/report/wandb_run.h"

namespace welkin::apps {
namespace {

struct ReportRequest {
  std::vector<std::string> runs, scores;
  observe::ReportOptions options;
  std::filesystem::path output = "report.html";
  std::string json;
  std::filesystem::path mlflow, wandb;
  int64_t devices = 0, batch = 0;
  bool is_live = false;
  double interval_s = 5;
};

std::vector<observe::RunHistory> read_all_runs(Application& application, const ReportRequest& request) {
  std::vector<observe::RunHistory> runs;
  for (const std::string& argument : request.runs) {
    for (observe::RunHistory& run : observe::read_runs(argument)) {
      if (!run.devices && request.devices > 0) run.devices = request.devices;
      if (!run.global_batch && request.batch > 0) run.global_batch = request.batch;
      if (!run.damage.empty())
        application.err << "note: what comes before the damage is shown: run=" << run.label << ", " << run.damage << "\n";
      run.facts.state = observe::standing_of(run);
      if (run.scalars.is_cut && !request.is_live)
        application.err << "note: the last record is not whole yet: run=" << run.label << "\n";
      runs.push_back(std::move(run));
    }
  }
  observe::tell_apart(runs);
  return runs;
}

observe::PageOptions page_options(const ReportRequest& request) {
  constexpr size_t kToSeconds = 19;  // of "2026-01-31T12:00:00.250Z"
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::string made = observe::utc_text(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()).substr(0, kToSeconds);
  std::replace(made.begin(), made.end(), 'T', ' ');
  observe::PageOptions page{.made = cat("as of ", made, " UTC")};
  for (const std::string& file : request.scores) {
    for (observe::ScoreSeries& series : observe::read_scores(file)) page.scores.push_back(std::move(series));
  }
  return page;
}

// Of a run that never says how it stands, only the time without a change tells.
bool goes_on(const observe::RunHistory& run) {
  const auto silent_for = std::filesystem::file_time_type::clock::now() - run.last_write;
  return observe::may_go_on(run.facts.state) && silent_for <= observe::kSilence;
}

// A page without its data beside it stays whole: what is open takes the new data from the second file.
observe::RunComparison write_page(Application& application, const ReportRequest& request, bool is_stopping, bool& has_ended) {
  const std::vector<observe::RunHistory> runs = read_all_runs(application, request);
  observe::RunComparison comparison = observe::compare_runs(runs, request.options);
  has_ended = std::none_of(runs.begin(), runs.end(), goes_on);
  observe::PageOptions page = page_options(request);
  if (request.is_live) {
    page.live = !has_ended && !is_stopping;
    page.live_file = request.output.stem().string() + ".live.js";
    write_file_atomically(request.output.parent_path() / page.live_file, observe::live_script(comparison, runs, page));
  }
  write_file_atomically(request.output, observe::comparison_html(comparison, runs, page));
  if (!request.mlflow.empty()) observe::write_mlflow_store(request.mlflow, observe::kTrackedProject, runs);
  if (!request.wandb.empty()) observe::write_wandb_runs(request.wandb, observe::kTrackedProject, runs);
  return comparison;
}

// Until the runs have ended, or Ctrl-C.
observe::RunComparison follow(Application& application, const ReportRequest& request) {
  constexpr auto kPoll = std::chrono::milliseconds(100);
  const InterruptWatch interrupts;
  bool has_ended = false;
  observe::RunComparison comparison = write_page(application, request, false, has_ended);
  application.out << "page: " << request.output.string() << ", written anew every " << request.interval_s
                  << " s until the runs have ended or Ctrl-C\n"
                  << std::flush;
  for (bool is_stopping = false; !has_ended && !is_stopping;) {
    const auto due = std::chrono::steady_clock::now() + std::chrono::duration<double>(request.interval_s);
    while (std::chrono::steady_clock::now() < due && !interrupts.requested()) std::this_thread::sleep_for(kPoll);
    is_stopping = interrupts.requested();  // the last page says that nobody follows any more
    try {
      comparison = write_page(application, request, is_stopping, has_ended);
    } catch (const DataError& error) {  // a file that is written right now, or a full disk: the next time may be better
      application.err << "note: " << error.what() << "\n" << std::flush;
    }
  }
  return comparison;
}

}  // namespace

int verb_report(Application& application, int argc, char** argv) {
  CLI::App app(
      "Reads TensorBoard event files of runs, ours or the tutorials', with what else their folders hold, and writes one HTML "
      "page "
      "that needs no network: curves by step, relative wall time and samples with zoom, configuration differences, timeline, "
      "scores, pictures, events; prints samples/s, time and GPU-hours to a target score");
  ReportRequest request;
  app.add_option("RUN", request.runs, "event file, run folder or a folder above, as PATH or LABEL=PATH")->required();
  app.add_option("--output", request.output, "the page")->type_name("FILE")->capture_default_str();
  app.add_option("--json", request.json, "write the table as JSON to this file; - prints it instead of the text")
      ->type_name("FILE");
  app.add_option("--score", request.options.score, "tag of which less is better")->capture_default_str();
  app.add_option("--target", request.options.target, "of the score; without it the best that all runs reach");
  app.add_option("--devices", request.devices, "of runs whose folder does not say it as <W>GPU")->check(CLI::PositiveNumber);
  app.add_option("--batch", request.batch, "samples of a step of runs without an out.log")->check(CLI::PositiveNumber);
  app.add_option("--scores", request.scores, "files of welkin evaluate --json for the page, as PATH or LABEL=PATH")
      ->type_name("FILE");
  app.add_option("--mlflow", request.mlflow, "write the runs as an MLflow file store below this folder, too")
      ->type_name("FOLDER");
  app.add_option("--wandb", request.wandb, "write the runs as offline runs of Weights & Biases below this folder, too")
      ->type_name("FOLDER");
  app.add_flag("--live", request.is_live, "write the page anew while the runs go on; a page that is open follows");
  app.add_option("--interval", request.interval_s, "seconds between two pages of --live")
      ->check(CLI::Range(0.5, 3600.0))
      ->capture_default_str();
  if (!parse_arguments(application, app, argc, argv)) return 0;
  if (request.options.target && !std::isfinite(*request.options.target)) {
    throw ConfigError("report", cat("the target is no number that a score could reach: target=", *request.options.target),
                      "Give a finite --target, or none: then it is the best that all runs reach");
  }
  bool has_ended = false;
  const observe::RunComparison comparison =
      request.is_live ? follow(application, request) : write_page(application, request, false, has_ended);
  if (!request.json.empty() && request.json != "-") write_file_atomically(request.json, observe::comparison_json(comparison));
  if (request.json == "-") {
    application.out << observe::comparison_json(comparison);
  } else {
    application.out << observe::comparison_text(comparison) << "page: " << request.output.string() << "\n";
  }
  return 0;
}

}  // namespace welkin::apps
