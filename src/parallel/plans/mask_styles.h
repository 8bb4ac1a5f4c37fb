// SPDX-License-Identifier: Apache-2.0
// Parallel styles of dropout layers: the window of the whole mask that a member draws, so that all members together drop the
// same elements as one process (model/layers/dropout.h).
#pragma once

#include "model/layers/dropout.h"
#include "parallel/mesh/axis.h"
#include "parallel/tokens/context_attention.h"

namespace welkin::parallel {

struct PlanContext;  // plan_context.h

// For (B, own tokens, all features).
struct TokenMask {
  model::Dropout::WindowOf window(const PlanContext& context) const;
};

// For (B, tokens of the section, own features).
struct ColumnMask {
  Axis axis = Axis::Tp;

  model::Dropout::WindowOf window(const PlanContext& context) const;
};

// For attention weights (B, own heads, own queries, keys).
struct AttentionMask {
  Axis heads = Axis::Tp;
  AxisSet tokens = Axis::Cp;
  ContextMode mode = ContextMode::AllGather;

  model::Dropout::WindowOf window(const PlanContext& context) const;
};

}  // namespace welkin::parallel
