// SPDX-License-Identifier: Apache-2.0
// What ranks of a pipeline send each other, and in which order, as the table says it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "parallel/pipeline/schedule.h"

namespace welkin::parallel {

// Over a boundary, which lies behind the stage of its number in the chain: what a forward pass has left for the next stage
// (behind the model's last one the next lead's input), or on the way back the gradient of that.
struct StageMessage {
  int64_t boundary = 0;
  int64_t micro = 0;
  bool is_gradient = false;

  bool operator==(const StageMessage&) const = default;
};

struct TimedMessage {
  StageMessage message;
  size_t made_by = 0;  // pass of the sender's row that makes it
  size_t used_by = 0;  // pass of the receiver's row that works on it
};

// All of a step, in the order of their sending.
std::vector<TimedMessage> messages_between(const Schedule& schedule, int64_t from, int64_t to);

}  // namespace welkin::parallel
