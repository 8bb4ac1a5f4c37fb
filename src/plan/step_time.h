// SPDX-License-Identifier: Apache-2.0
// Time of a training step on a machine, from what an estimate says that a rank computes and sends. For comparing layouts: the
// rules of what runs beside the computation are simple, and stand here.
#pragma once

#include <cstdint>

#include "plan/link_model.h"
#include "plan/run_estimate.h"

namespace welkin::plan {

struct Machine {
  double flops_per_second = 0;  // achieved by a device
  // Of the links of a device: to others of its node, and to other nodes.
  double node_bytes_per_second = 0, network_bytes_per_second = 0;
  double latency_s = 0;  // of a message

  // A collective of `bytes` over `ranks`, by its ring formula.
  double seconds(CollectiveKind kind, int64_t ranks, bool leaves_node, double bytes) const;
};

// Seconds of one step. A collective beside the computation adds only what lasts longer than the computation that hides it.
struct StepTime {
  double compute = 0;    // passes and what is run again
  double idle = 0;       // of a pipeline's rank, without a pass
  double model = 0;      // the model's own collectives: tp, cp, blocks
  double gradients = 0;  // gradients, and sharded weights
  double stages = 0;     // messages between stages

  double total() const { return compute + idle + model + gradients + stages; }
};

StepTime step_time(const RunEstimate& run, const Machine& machine);

}  // namespace welkin::plan
