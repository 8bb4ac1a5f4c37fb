// SPDX-License-Identifier: Apache-2.0
// Where a run computes, and the process-wide settings of torch that the configuration decides.
#pragma once

#include <c10/core/Device.h>

#include "config/run_config.h"

namespace welkin::train {

// auto: a GPU where there is one. cuda without a GPU or without libtorch_cuda is a ConfigError, never a silent CPU run.
c10::Device choose_device(const std::string& name);

// Intra-op threads (0: the cores of this process) and deterministic algorithms.
void configure_torch(const config::LoopConfig& config);

}  // namespace welkin::train
