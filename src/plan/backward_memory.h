// SPDX-License-Identifier: Apache-2.0
// Memory of a step's last backward pass if data-parallel ranks shard the training state (key `shard`). Gradients of whole
// parameters appear layer by layer, are packed into buckets or sent as they are, and become gradients of a rank's pieces, while
// activations are freed (parallel/sharding/sharded_gradients.h). The peak is less than the sum of each kind's own peak.
#pragma once

#include <vector>

namespace welkin::plan {

// Bytes of a layer's gradients, equal to its weights', and of the activations that its backward pass reads and frees.
struct BackwardLayer {
  double gradients = 0, activations = 0;
  bool begins_unit = false;  // the last layer of a unit in the backward pass: no bucket reaches beyond it
};

struct BackwardPass {
  std::vector<BackwardLayer> layers;  // in the order of the forward pass
  double ranks = 1;                   // number of ranks that share the state
  double bucket_bytes = 0;            // at which a bucket is full
  // For sharded weights: a bucket ends before it would exceed this size, and with its unit. Else it ends at this size, the
  // first one at 1 MiB.
  bool ends_with_units = false;
  bool adds_up = false;     // gradients of whole parameters from earlier passes of the step are present
  bool has_pieces = false;  // gradients of pieces from earlier passes are present
  double travelling = 1;    // bytes of a sent gradient, over its own bytes
  // A layer's gradients of as many bytes are not packed, but sent from where they are (parallel/sharding/shard_bucket.h).
  double alone_bytes = 1 << 20;
  // Received values have buffers of their own before they are added, as over Gloo. They are taken to be added while
  // the next layer's gradients are made: a slower network holds one bucket more.
  bool is_received = false;
};

// Bytes at the moment of the largest total.
struct BackwardPeak {
  double gradients = 0;    // of whole parameters and of pieces
  double under_way = 0;    // what is sent, with the received values
  double activations = 0;  // not yet freed

  double sum() const { return gradients + under_way + activations; }
};

BackwardPeak backward_peak(const BackwardPass& pass);

}  // namespace welkin::plan
