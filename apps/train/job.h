// SPDX-License-Identifier: Apache-2.0
// The job of a batch system that a run is in: the time that it has left, and queueing it again.
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

// Null where it is not set.
const char* read_environment(const char* name);
// Since the job began, as far as this process knows: a launcher that starts processes again says when it was.
double seconds_of_job(const Stopwatch& of_process);
// The nearer of the limit that was given, from the beginning of the job, and the batch system's. One rank asks for all.
std::optional<train::TimeLimit> time_limit_of(const config::LoopConfig& config, const launch::RankInfo& place,
                                              double seconds_of_job);

bool is_to_be_requeued(const train::RunOutcome& outcome);
// Before the first step there is nothing to save, and a rank that stops ends the others.
bool is_end_by_signal(const Error& error, const InterruptWatch& interrupt);
// ConfigError where the job has not done a step: a time limit would find the next job where it found this one. Who sends a signal
// knows what it wants.
void check_time_was_enough(const train::RunOutcome& outcome, bool is_started_again);
// The job's last act: the batch system ends it and queues it again. ConfigError where it refuses.
void requeue(const std::string& command, observe::RunLog& log);

}  // namespace welkin::apps
