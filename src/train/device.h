// SPDX-License-Identifier: Apache-2.0
// Where a run computes, and the process-wide settings of torch that the configuration decides.
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "config/run_config.h"

namespace welkin::train {

// auto: a GPU where there is one; which one follows the rank within the node. cuda without a GPU or without libtorch_cuda is a
// ConfigError, never a silent CPU run.
// `local_size` ranks share the node: more than it has GPUs is a ConfigError too, since NCCL takes one rank per GPU.
c10::Device choose_device(const std::string& name, int64_t local_rank = 0, int64_t local_size = 1);

// The configuration as data sets are to be opened for a device: on a CPU the device's memory is the host's.
config::RunConfig for_device(config::RunConfig config, c10::Device device);

// Intra-op threads (0: OMP_NUM_THREADS, which launchers set, else the cores of this process), deterministic algorithms, TF32,
// cuDNN and the memory limit. Before the first operator: cuBLAS reads its workspace rule when it starts.
void configure_torch(const config::RunConfig& config);

}  // namespace welkin::train
