// SPDX-License-Identifier: Apache-2.0
// The messages between ranks of a pipeline, and their order, from the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "parallel/pipeline/schedule.h"

namespace welkin::parallel {

// A message over a boundary, which has the number of the stage before it in the chain: a forward pass's output for the next
// stage (behind the model's last stage the next lead's input), or in the other direction its gradient.
struct StageMessage {
  int64_t boundary = 0;
  int64_t micro = 0;
  bool is_gradient = false;

  bool operator==(const StageMessage&) const = default;
};

struct TimedMessage {
  StageMessage message;
  size_t made_by = 0;  // pass in the sender's row that makes it
  size_t used_by = 0;  // pass in the receiver's row that uses it
};

// All messages of a step, in the order of sending.
std::vector<TimedMessage> messages_between(const Schedule& schedule, int64_t from, int64_t to);

}  // namespace welkin::parallel
