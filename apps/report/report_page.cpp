// SPDX-License-Identifier: Apache-2.0
#include "apps/report/report_page.h"

#include <algorithm>
#include <chrono>
#include <ostream>
#include <thread>

#include "core/error.h"
#include "core/file.h"
#include "core/process/signals.h"
#include "core/text.h"
#include "observe/log/event_log.h"
#include "observe/report/mlflow_store.h"
#include "observe/report/run_standing.h"
#include "observe/report/tracked_runs.h"
#include "observe/report/wandb_run.h"

namespace welkin::apps {
namespace {

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
  constexpr size_t kToSeconds = 19;  // length of "2026-01-31T12:00:00.250Z" to the seconds
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::string made = observe::utc_text(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()).substr(0, kToSeconds);
  std::replace(made.begin(), made.end(), 'T', ' ');
  observe::PageOptions page{.made = cat("as of ", made, " UTC")};
  for (const std::string& file : request.scores) {
    for (observe::ScoreSeries& series : observe::read_scores(file)) page.scores.push_back(std::move(series));
  }
  return page;
}

// A run that never reports its end counts as running until it has been silent for kSilence.
bool goes_on(const observe::RunHistory& run) {
  const auto silent_for = std::filesystem::file_time_type::clock::now() - run.last_write;
  return observe::may_go_on(run.facts.state) && silent_for <= observe::kSilence;
}

}  // namespace

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

observe::RunComparison follow_runs(Application& application, const ReportRequest& request) {
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
    is_stopping = interrupts.requested();  // the last page says that it is no longer updated
    try {
      comparison = write_page(application, request, is_stopping, has_ended);
    } catch (const DataError& error) {  // a file that is being written, or a full disk: the next time may work
      application.err << "note: " << error.what() << "\n" << std::flush;
    }
  }
  return comparison;
}

}  // namespace welkin::apps
