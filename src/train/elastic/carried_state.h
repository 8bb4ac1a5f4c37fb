// SPDX-License-Identifier: Apache-2.0
// The whole training state of a rank in the host's memory, between two rounds of an elastic run. Ranks that replicate each
// other have the same state, so a remaining rank has all that is needed: nothing is read from disk.
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
  CheckpointIndex index;                      // position of the run
  std::map<std::string, at::Tensor> tensors;  // by stored name, contiguous, on the CPU
};

// Copies the state. Null if values are not in memory.
std::unique_ptr<CarriedState> carry_state(const std::vector<CheckpointGroup>& groups, CheckpointIndex index);

// The state from which a round continues.
struct SharedState {
  CheckpointIndex index;
  int64_t rank = 0;  // the rank that carried it
};

// The ranks of a new round agree on the rank that has come farthest; the groups' tensors get its state on all of them. Returns
// nothing and changes no tensor if no rank has one (`own` is null). Every rank calls it with equally named groups. CommError.
std::optional<SharedState> share_state(const parallel::World& world, const CarriedState* own,
                                       const std::vector<CheckpointGroup>& groups);

}  // namespace welkin::train
