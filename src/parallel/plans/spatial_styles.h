// SPDX-License-Identifier: Apache-2.0
// Parallel styles of layers on boxes that are cut into blocks over the axes d, h, w.
#pragma once

#include "model/layers/conv3d.h"
#include "parallel/spatial/halo_plan.h"

namespace welkin::parallel {

struct PlanContext;  // plan_context.h

// A convolution layer; its name is the layer's.
struct HaloConvolution {
  Cells in_cells{}, out_cells{};  // of the whole boxes that it takes and makes

  void split(const PlanContext& context, model::BoxConvolution& layer) const;
};

}  // namespace welkin::parallel
