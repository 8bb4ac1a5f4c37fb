// SPDX-License-Identifier: Apache-2.0
// Options for running reference cases.
#pragma once

#include <c10/core/Device.h>

#include <optional>

#include "config/schema/run_config.h"
#include "parallel/comm/mesh_groups.h"

namespace welkin::verify {

// The processes of a run that verifies "parallel" cases, with this process among them.
struct CaseRanks {
  int64_t rank = 0, world_size = 1;
  parallel::MakeGroup make_group{};
};

struct VerifyOptions {
  c10::Device device = c10::kCPU;
  std::optional<config::AmpMode> amp_mode{};  // instead of the case's own precision
  const CaseRanks* ranks = nullptr;           // null: one process; "parallel" cases then compare only their serial numbers
};

}  // namespace welkin::verify
