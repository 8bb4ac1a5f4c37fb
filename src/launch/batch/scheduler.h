// SPDX-License-Identifier: Apache-2.0
// Facts from the batch system of this job: how long the job may still run, and the command that queues it again. It reads
// variables and asks the system's own commands; it starts nothing by itself.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "launch/batch/environment.h"

namespace welkin::launch {

// Returns the output of a shell command; nullopt where it fails.
using RunCommand = std::function<std::optional<std::string>(const std::string&)>;

// RunCommand with half a minute and 1 MiB of output for each. Its errors go to stderr.
std::optional<std::string> output_of(const std::string& command);

struct TimeLeft {
  double seconds = 0;
  std::string source;  // "Slurm", "Flux", "LSF", "PBS"
};

// Called once, since a job's end does not move. Slurm gives it in SLURM_JOB_END_TIME (23.02 and later) or squeue, Flux in `flux
// job timeleft`, LSF in `bjobs -o time_left` in whole minutes, PBS in `qstat -f`. Nullopt outside of a job, for one without a
// limit, and where the command fails. `unix_now`: seconds since 1970.
std::optional<TimeLeft> time_left(const ReadVariable& read, const RunCommand& run, int64_t unix_now);

// Ends this job and queues it again: `scontrol requeue`, `brequeue` or `qrerun` with its number. Throws ConfigError outside of a
// job, and in one of Flux, which has no such command.
std::string requeue_command(const ReadVariable& read);

}  // namespace welkin::launch
