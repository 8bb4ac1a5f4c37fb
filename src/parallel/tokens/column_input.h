// SPDX-License-Identifier: Apache-2.0
// The input of column-parallel linear layers, which every member of a group multiplies by its own columns. In the backward pass
// its communication overlaps the matmuls. If tokens are split over the same group, they are gathered for the matmuls
// and released after them. Only the member's own part is kept (the result of a norm not even that: it is recomputed,
// ops/norm/layer_norm.h), and the backward pass gathers again for the weight gradients (Korthikanti et al. 2022, Reducing
// Activation Recomputation in Large Transformer Models, section 4.2.2). Without this, the gathered inputs of q, k, v and of the
// MLP would take most of a rank's activation memory.
//
// A backward pass starts the gather and computes the first matmul's input gradient meanwhile. With the last one the sum
// over the members starts, and the last weight's gradient is computed meanwhile. With delayed weight gradients (zero_bubble)
// the pass computes and sums the input gradients only, and the first weight gradient does the gather.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>

#include "parallel/comm/collectives.h"
#include "parallel/shard/weight_queue.h"

namespace welkin::parallel {

// The shared input of one layer, for its entrance and the matmuls behind it. Used by the thread that runs the model.
class ColumnInput {
 public:
  // `lengths`: of the members' tokens if these are split over the group; else every member has all of them. `queue`: for
  // delayed weight gradients; may be null.
  ColumnInput(Group group, std::optional<Lengths> lengths, std::shared_ptr<WeightQueue> queue = nullptr);
  ~ColumnInput();
  ColumnInput(const ColumnInput&) = delete;
  ColumnInput& operator=(const ColumnInput&) = delete;

  // own (B, own tokens, D) -> (B, tokens of the group, D). Its gradient is the sum over the members; with split tokens this
  // member's part of it.
  at::Tensor enter(const at::Tensor& own);

  // x weight^T, weight (out, D), if x is the last result of enter() and a gradient will be requested; else nothing. Casts as
  // at::linear does. The backward pass of every member must reach its matmuls in the same order.
  std::optional<at::Tensor> matmul(const at::Tensor& x, const at::Tensor& weight);

 private:
  struct Source;
  struct Entrance;
  struct Matmul;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace welkin::parallel
