// SPDX-License-Identifier: Apache-2.0
// Parallel styles of layers on samples that are cut into blocks over the axes d, h, w. A field is a box of one point along d.
#pragma once

#include "model/layers/instance_norm.h"
#include "model/layers/local_layer.h"
#include "parallel/spatial/halo_plan.h"

namespace welkin::parallel {

struct PlanContext;  // plan_context.h

// A layer that reads points nearby; its name is the layer's.
struct HaloConvolution {
  Cells in_cells{}, out_cells{};  // of the whole boxes that it takes and makes

  void split(const PlanContext& context, model::LocalLayer& layer) const;
};

// A norm over all points of a channel; its name is the layer's.
struct BlockNorm {
  Cells cells{};  // of the whole

  void split(const PlanContext& context, model::InstanceNorm& layer) const;
};

}  // namespace welkin::parallel
