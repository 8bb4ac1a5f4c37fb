// SPDX-License-Identifier: Apache-2.0
// The whole training state of a rank in the host's memory, between two rounds of an elastic run. Ranks that replicate each other
// have the same, so one that was left has all that is needed: nothing is read from disk.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parallel/comm/world.h"
#include "train/checkpoint/checkpoint.h"

namespace welkin::train {

struct CarriedState {
  CheckpointIndex index;                      // where the run stands
  std::map<std::string, at::Tensor> tensors;  // by stored name, contiguous, on the CPU
};

// A copy. Null where values are not in memory.
std::unique_ptr<CarriedState> carry_state(const std::vector<CheckpointGroup>& groups, CheckpointIndex index);

// What a round continues from.
struct SharedState {
  CheckpointIndex index;
  int64_t rank = 0;  // whose state it was
};

// The ranks of a new round agree on who has come farthest, and the groups' tensors get that state on all of them. Nothing, and no
// tensor is touched, where nobody carries one (`own` is null). Every rank calls it with groups of the same names. CommError.
std::optional<SharedState> share_state(const parallel::World& world, const CarriedState* own,
                                       const std::vector<CheckpointGroup>& groups);

}  // namespace welkin::train
