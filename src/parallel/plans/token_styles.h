// SPDX-License-Identifier: Apache-2.0
// Parallel styles that split the tokens of a sample: sequence and context parallelism. Tokens are dim 1 of (B, N, D).
#pragma once

#include <vector>

#include "model/base/site.h"
#include "parallel/plans/partial_sums.h"
#include "parallel/tokens/context_attention.h"

namespace welkin::parallel {

struct PlanContext;  // plan_context.h

// From here on each member has its own tokens. With two axes each part of the first is split by the second.
struct SplitTokens {
  std::vector<Axis> axes;

  void install(PlanContext& context, model::Site& site) const;
  void leave(PartialSums& sums) const;
};

// From here on every member has all tokens again, and all compute the same.
struct GatherTokens {
  std::vector<Axis> axes;

  void install(PlanContext& context, model::Site& site) const;
  void leave(PartialSums& sums) const { sums.tokens = {}; }
};

// Attention over tokens that are split over the axes. The order of keys does not matter to it.
struct ContextParallelAttention {
  AxisSet axes = Axis::Cp;
  ContextMode mode = ContextMode::AllGather;

  void install(PlanContext& context, model::Site& site) const;
};

// A layer that needs all tokens and does not mix channels: an all-to-all gives each member all tokens of some channels, and
// another one its own tokens of all channels (channel_exchange.h). The site takes (B, N, features) and weights, of which a
// member uses those of its channels. The tokens of all are in the rows of the grid.
struct TokensToChannels {
  AxisSet axes = Axis::Cp;
  int64_t parts = 1;       // blocks of features, each with all channels: 3 for a joint q, k, v
  int64_t weight_dim = 0;  // dim of the channels in each weight

  void install(PlanContext& context, model::Site& site) const;
};

// A parameter used before SplitTokens or after GatherTokens.
struct AllTokens {};

// If the input itself is split (Plan::input_axes): sites whose tokens are those of the rows that are read, or of the whole:
struct OwnFromRead {  // from the tokens of the read rows to the own ones
  void install(PlanContext& context, model::Site& site) const;
};
struct OwnFromAll {  // from all tokens to the own ones
  void install(PlanContext& context, model::Site& site) const;
};
struct ReadFromOwn {  // from own tokens to those of the read rows; the others are zero and unused
  void install(PlanContext& context, model::Site& site) const;
};

}  // namespace welkin::parallel
