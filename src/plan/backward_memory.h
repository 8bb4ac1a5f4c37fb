// SPDX-License-Identifier: Apache-2.0
// Memory of the last backward pass of a step where data-parallel ranks share out the training state (key `shard`): gradients of
// whole parameters come layer by layer, are packed into buckets, travel, and become those of a rank's pieces, while activations
// go (parallel/sharding/sharded_gradients.h). What stands at the worst moment is no sum of what each kind takes at most.
#pragma once

#include <vector>

namespace welkin::plan {

// Bytes of its gradients, which are those of its weights, and of what its backward pass reads and lets go.
struct BackwardLayer {
  double gradients = 0, activations = 0;
  bool begins_unit = false;  // the last layer of a unit in the backward pass: no bucket reaches beyond it
};

struct BackwardPass {
  std::vector<BackwardLayer> layers;  // in the order of the forward pass
  double ranks = 1;                   // that share the state out
  double bucket_bytes = 0;            // at which a bucket is full
  // Weights are shared out: a bucket ends before it would be larger, and with its unit. Else it ends when it is as large, and the
  // first one at 1 MiB.
  bool ends_with_units = false;
  bool adds_up = false;      // gradients of whole parameters stand there from earlier passes of the step
  bool has_pieces = false;   // those of pieces do
  double travelling = 1;     // bytes of a gradient on its way, over its own
  bool is_received = false;  // what the others send has room of its own before it is added, as over Gloo
};

// Bytes at the moment when they are most together.
struct BackwardPeak {
  double gradients = 0;    // of whole parameters and of pieces
  double under_way = 0;    // packed, with what arrives
  double activations = 0;  // that are left

  double sum() const { return gradients + under_way + activations; }
};

BackwardPeak backward_peak(const BackwardPass& pass);

}  // namespace welkin::plan
