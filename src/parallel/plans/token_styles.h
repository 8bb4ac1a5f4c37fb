// SPDX-License-Identifier: Apache-2.0
// Parallel styles that split the tokens of a sample: sequence and context parallelism. Tokens are dim 1 of (B, N, D).
#pragma once

#include <vector>

#include "model/base/site.h"
#include "parallel/plans/partial_sums.h"
#include "parallel/tokens/context_attention.h"

namespace welkin::parallel {

struct PlanContext;  // plan_context.h

// From here on each member has its own tokens; with two axes each part of the first is split by the second.
struct SplitTokens {
  std::vector<Axis> axes;

  void install(PlanContext& context, model::Site& site) const;
  void leave(PartialSums& sums) const;
};

// From here on every member has all tokens again, and all do the same.
struct GatherTokens {
  std::vector<Axis> axes;

  void install(PlanContext& context, model::Site& site) const;
  void leave(PartialSums& sums) const { sums.tokens = {}; }
};

// Attention over tokens that are split over the axis.
struct ContextParallelAttention {
  Axis axis = Axis::Cp;
  ContextMode mode = ContextMode::AllGather;

  void install(PlanContext& context, model::Site& site) const;
};

// A layer that needs all tokens and whose channels do not meet: an all-to-all brings a member all tokens of some channels,
// another one its own tokens of all channels (channel_exchange.h). The site works on (B, N, features), and on weights, of which a
// member takes those of its channels.
struct TokensToChannels {
  Axis axis = Axis::Cp;
  int64_t parts = 1;       // of the features, each of which has all channels: 3 for a joint q, k, v
  int64_t weight_dim = 0;  // of the channels in each weight

  void install(PlanContext& context, model::Site& site) const;
};

// A parameter that stands before SplitTokens or after GatherTokens.
struct AllTokens {};

// Where the input itself is split (Plan::input_axes), a site whose tokens are those of the rows that are read, or of the whole:
struct OwnFromRead {  // from the tokens of the rows to the own ones
  void install(PlanContext& context, model::Site& site) const;
};
struct OwnFromAll {  // from the tokens of the whole to the own ones
  void install(PlanContext& context, model::Site& site) const;
};
struct ReadFromOwn {  // from own tokens to those of the rows read; the others are zero and unused
  void install(PlanContext& context, model::Site& site) const;
};

}  // namespace welkin::parallel
