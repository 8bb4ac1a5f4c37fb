// SPDX-License-Identifier: Apache-2.0
// The messages of one pipeline rank during one step. Both sides use the table's order; receives are posted ahead, and only
// needed messages are waited for.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "model/base/site.h"
#include "parallel/comm/collectives.h"
#include "parallel/pipeline/schedule_messages.h"

namespace welkin::parallel {

// New tensors for a message of this micro-batch over this boundary.
using MakeBuffers = std::function<model::Tensors(int64_t boundary, int64_t micro)>;

class StageMessages {
 public:
  // `schedule` and `ranks` (the pipeline's ranks in the order of its stages) outlive this object.
  StageMessages(const Schedule& schedule, const Group& ranks, MakeBuffers make_buffers);

  // For the current pass of this rank. A receive waits; a send does not.
  model::Tensors receive(const StageMessage& message);
  void send(const StageMessage& message, const model::Tensors& tensors);

  // Waits until all messages have arrived.
  void finish();

 private:
  struct Posted {
    model::Tensors buffers;
    std::vector<Transfer> transfers;
  };
  struct Incoming {
    std::vector<TimedMessage> wanted;  // in the sender's order
    std::vector<Posted> posted;        // the first of them
  };
  struct Leaving {
    size_t used_by;  // pass of the receiver's row
    std::vector<at::Tensor> buffers;
    std::vector<Transfer> transfers;
  };
  void post_until(int64_t from, size_t count);
  void let_go(int64_t rank, size_t passes_done);
  size_t used_by(const StageMessage& message, int64_t to) const;

  const Group& ranks_;
  MakeBuffers make_buffers_;
  PipelineShape shape_;
  std::vector<Incoming> incoming_;                   // by rank
  std::vector<std::vector<TimedMessage>> outgoing_;  // by rank
  std::vector<std::deque<Leaving>> leaving_;         // by rank
};

}  // namespace welkin::parallel
