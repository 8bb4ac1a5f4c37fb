// SPDX-License-Identifier: Apache-2.0
// The batch job of a run: its remaining time, and queueing it again.
#pragma once

#include <optional>
#include <string>

#include "config/resolve/resolve.h"
#include "core/process/signals.h"
#include "core/stopwatch.h"
#include "launch/ranks.h"
#include "observe/log/run_log.h"
#include "train/run/trainer.h"

namespace welkin::apps {

// Null if the variable is not set.
const char* read_environment(const char* name);
// Seconds since the job began, as far as this process knows: a launcher that restarts processes passes the job's start.
double seconds_of_job(const Stopwatch& of_process);
// The nearer of the given limit, counted from the job's begin, and the batch system's. One rank asks for all.
std::optional<train::TimeLimit> time_limit_of(const config::LoopConfig& config, const launch::RankInfo& place,
                                              double seconds_of_job);

bool is_to_be_requeued(const train::RunOutcome& outcome);
// True if SIGUSR1 caused the error. Before the first step there is nothing to save, and a rank that stops ends the others.
bool is_end_by_signal(const Error& error, const InterruptWatch& interrupt);
// ConfigError if the job has not done a step: the next job would meet the same time limit. A stop by SIGUSR1 passes, since its
// sender chose the time.
void check_time_was_enough(const train::RunOutcome& outcome, bool is_started_again);
// The last action of a job: the batch system ends it and queues it again. ConfigError if it refuses.
void requeue(const std::string& command, observe::RunLog& log);

}  // namespace welkin::apps
