// SPDX-License-Identifier: Apache-2.0
// Which implementations compute the numbers of a run. Checkpoints record them: a run that goes on with others equals the
// uninterrupted one only to rounding, and not bit for bit.
#pragma once

#include <c10/core/Device.h>

#include <map>
#include <string>

#include "config/schema/run_config.h"
#include "model/registry.h"

namespace welkin::train {

// By name, each beginning with "kernels.": the providers of float32 matmuls, attention and convolutions, the instruction set,
// and the number of threads over which sums are split. It reads what the ProcessSession has set, not the configuration.
// `config` names the model, which decides which operators there are, and the precision.
using KernelChoice = std::map<std::string, std::string>;
KernelChoice kernel_choice(const config::RunConfig& config, const model::ModelEntry& model, c10::Device device);

// The line for the log: "Kernels: attention welkin, instruction_set avx512, ...".
std::string kernels_line(const KernelChoice& choice);

// Returns "gemm onednn and mkl, threads 2 and 4" if both name a kernel and differ; empty if they agree. Checkpoints of earlier
// versions name none.
std::string kernel_changes(const std::map<std::string, std::string>& stored, const KernelChoice& now);

// For a run that goes on: returns the line to log if the kernels differ from the stored ones, else an empty text.
// CheckpointError if the run is `deterministic`: it promises the same bits.
std::string check_kernels(const std::map<std::string, std::string>& stored, const KernelChoice& now, bool deterministic);

}  // namespace welkin::train
