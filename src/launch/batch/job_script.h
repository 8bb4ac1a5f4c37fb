// SPDX-License-Identifier: Apache-2.0
// Job scripts of the batch systems besides Slurm (batch_script.h): Flux, LSF, PBS. Pure text.
#pragma once

#include <string>
#include <vector>

#include "launch/batch/batch_script.h"

namespace welkin::launch {

// "slurm", "flux", "lsf", "pbs".
const std::vector<std::string>& batch_systems();

// The script as `sbatch`, `flux batch`, `bsub <` or `qsub` takes it. Directives are the system's own: {"time-limit", "2h"} of
// Flux, {"W", "2:00"} of LSF, {"l", "walltime=02:00:00"} of PBS; `time` (as Slurm writes it), `account`, `job-name`, `output`,
// `error`, `partition` and `requeue` are translated. LSF and PBS start the ranks by mpirun. ConfigError for an unknown system,
// for directives that the system does not have, and for `image` on systems other than Slurm.
std::string job_script(const std::string& system, const BatchJob& job);

}  // namespace welkin::launch
