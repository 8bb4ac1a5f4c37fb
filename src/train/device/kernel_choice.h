// SPDX-License-Identifier: Apache-2.0
// Which implementations the numbers of a run come from. They are recorded in its checkpoints, since a run that goes on with
// others equals the uninterrupted one to rounding only, and not bit for bit.
#pragma once

#include <c10/core/Device.h>

#include <map>
#include <string>

#include "config/schema/run_config.h"
#include "model/registry.h"

namespace welkin::train {

// By name, each beginning with "kernels.": who computes float32 matmuls, attention and convolutions, with which instructions,
// and over how many threads sums are split. What the ProcessSession has set is asked, not the configuration. `config` names the
// model, which decides which operators there are, and the precision.
using KernelChoice = std::map<std::string, std::string>;
KernelChoice kernel_choice(const config::RunConfig& config, const model::ModelEntry& model, c10::Device device);

// For the log: "Kernels: attention welkin, instruction_set avx512, ...".
std::string kernels_line(const KernelChoice& choice);

// "gemm onednn and mkl, threads 2 and 4" where both name a kernel and differ; empty where they agree. Checkpoints of earlier
// versions name none.
std::string kernel_changes(const std::map<std::string, std::string>& stored, const KernelChoice& now);

// For a run that goes on: nothing where the kernels are the stored ones; else what to log. CheckpointError where the run is
// `deterministic`: it promises the same bits.
std::string check_kernels(const std::map<std::string, std::string>& stored, const KernelChoice& now, bool deterministic);

}  // namespace welkin::train
