// SPDX-License-Identifier: Apache-2.0
// Parallel styles that split weights: of matmuls (Shoeybi et al. 2019, Megatron-LM, section 3) and of convolutions. Each
// applies to a site with the layer's name.
#pragma once

#include <cstdint>

#include "model/base/site.h"
#include "parallel/plans/partial_sums.h"

namespace welkin::parallel {

struct PlanContext;  // plan_context.h

// The shared input of several column-split matmuls; gathered if the tokens are split over the axis, too.
struct ColumnParallelInput {
  Axis axis = Axis::Tp;

  void install(PlanContext& context, model::Site& site) const;
  void enter(PartialSums& sums) const { sums.section = axis; }
};

// A Linear's outputs are split: rows of the weight, elements of the bias.
struct ColumnParallel {
  Axis axis = Axis::Tp;
  int64_t parts = 1;  // blocks of outputs, each of which is split: 3 for a joint q, k, v
  int64_t units = 0;  // units that stay whole in each block: attention heads; 0: single outputs

  void install(PlanContext& context, model::Site& site) const;
};

// A Linear's inputs are split; matmuls are summed (and tokens split again), then the bias is added.
struct RowParallel {
  Axis axis = Axis::Tp;

  void install(PlanContext& context, model::Site& site) const;
  void enter(PartialSums& sums) const { sums.section = {}; }
};

// A layer on whole inputs (B, C, ...) that makes a part of the output channels. Its result is gathered, so that later layers
// see all channels. For convolutions, whose next layer needs every channel: weights, gradients and optimizer states are split,
// activations are not.
struct GatheredChannels {
  Axis axis = Axis::Tp;
  int64_t weight_dim = 0;  // dim of the output channels: 0 for a convolution, 1 for a transposed one

  void install(PlanContext& context, model::Site& site) const;
};

// A layer that works on groups of channels of (B, N, C), each with its own weights: every member computes its own groups, and
// all channels are gathered behind it. If tokens are split over the axis, too, they are exchanged for the groups' channels, and
// back.
struct GroupedChannels {
  Axis axis = Axis::Tp;
  int64_t group_dim = 0;  // dim of the groups in each of the layer's parameters

  void install(PlanContext& context, model::Site& site) const;
};

// A parameter that is a site itself, such as a table with a column for each head: every member has a part of it.
struct SplitParameter {
  Axis axis = Axis::Tp;
  int64_t dim = 0;

  void install(PlanContext& context, model::Site& site) const;
};

}  // namespace welkin::parallel
