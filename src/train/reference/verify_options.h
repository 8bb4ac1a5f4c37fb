// SPDX-License-Identifier: Apache-2.0
// How reference cases are to be run.
#pragma once

#include <c10/core/Device.h>

#include <optional>

#include "config/run_config.h"

namespace welkin::train::reference {

struct VerifyOptions {
  c10::Device device = c10::kCPU;
  std::optional<config::AmpMode> amp_mode{};  // instead of the case's own precision
};

}  // namespace welkin::train::reference
