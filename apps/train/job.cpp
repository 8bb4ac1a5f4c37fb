// SPDX-License-Identifier: Apache-2.0
#include "apps/train/job.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <ctime>

#include "core/duration.h"
#include "core/error.h"
#include "core/text.h"
#include "launch/batch/scheduler.h"
#include "launch/elastic/agent.h"

namespace welkin::apps {

const char* read_environment(const char* name) { return std::getenv(name); }

double seconds_of_job(const Stopwatch& of_process) {
  const char* const began = read_environment(launch::kJobStarted);
  const auto at = parse_count(began == nullptr ? "" : began);
  const double of_job = at ? std::difftime(std::time(nullptr), static_cast<std::time_t>(*at)) : 0;
  return std::max(of_job, of_process.seconds());
}

std::optional<train::TimeLimit> time_limit_of(const config::LoopConfig& config, const launch::RankInfo& place,
                                              double seconds_of_job) {
  if (place.rank != 0) return {};
  auto left = launch::time_left(read_environment, launch::output_of, std::time(nullptr));
  if (const auto given = parse_duration_s(config.time_limit)) {
    const double rest = static_cast<double>(*given) - seconds_of_job;
    if (!left || rest < left->seconds) left = {rest, "--time_limit"};
  }
  if (!left) return {};
  return train::TimeLimit(left->seconds, static_cast<double>(config.time_limit_margin), left->source);
}

bool is_to_be_requeued(const train::RunOutcome& outcome) {
  return !outcome.completed && (outcome.stop_signal == 0 || outcome.stop_signal == SIGUSR1);
}

void check_time_was_enough(const train::RunOutcome& outcome, bool is_started_again) {
  if (outcome.own_steps > 0 || is_started_again || outcome.stop_signal == SIGUSR1) return;
  throw ConfigError("requeue", "the job is not queued again, for it has not done a step: its time was over before",
                    "Give it more time, or a smaller --time_limit_margin");
}

void requeue(const std::string& command, observe::RunLog& log) {
  log.info(cat("Queueing the job again with: ", command));  // logged first: the batch system may end the job at once
  if (launch::output_of(command)) return;
  throw ConfigError("requeue", cat("the batch system refuses to queue the job again: command=", command),
                    "See its message above, and submit the job by hand: it continues from the checkpoint");
}

bool is_end_by_signal(const Error& error, const InterruptWatch& interrupt) {
  const bool is_end = error.exit_code() == ExitCode::Interrupted || error.exit_code() == ExitCode::Comm;
  return is_end && interrupt.signal_number() == SIGUSR1;
}

}  // namespace welkin::apps
