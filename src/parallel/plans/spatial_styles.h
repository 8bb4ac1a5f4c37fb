// SPDX-License-Identifier: Apache-2.0
// Parallel styles of layers on samples that are cut into blocks over the axes d, h, w. A field is a box with one point along d.
#pragma once

#include "model/base/site.h"
#include "model/layers/instance_norm.h"
#include "model/layers/local_layer.h"
#include "parallel/comm/collectives.h"
#include "parallel/spatial/halo_plan.h"

namespace welkin::parallel {

struct PlanContext;  // plan_context.h

// A layer that reads nearby points; the row names the layer.
struct HaloConvolution {
  Cells in_cells{}, out_cells{};  // of the whole boxes: the layer's input and result

  void split(const PlanContext& context, model::LocalLayer& layer) const;
};

// A norm over all points of a channel; the row names the layer.
struct BlockNorm {
  Cells cells{};  // of the whole

  void split(const PlanContext& context, model::InstanceNorm& layer) const;
};

// A spherical transform of fields (B, C, rows, columns), of which each member has a block. The site makes coefficients (B, C,
// degrees, M, 2) and the field on the result's grid. A member transforms some channels of all points, and returns its degrees of
// all channels and its block of the result's grid. Channels divide by the group.
struct SphereAnalysis {
  Cells from{}, to{};  // the whole grids: 1, rows, columns
  Lengths degrees;     // of each member

  void install(PlanContext& context, model::Site& site) const;
};

// The matrices of a member's degrees, from a weight (C, C', degrees, 2), the site's second tensor.
struct DegreeWeights {
  Lengths degrees;

  void install(PlanContext& context, model::Site& site) const;
};

// The inverse transform, from coefficients of a member's degrees to its block of the field.
struct SphereSynthesis {
  Lengths degrees;
  Cells to{};

  void install(PlanContext& context, model::Site& site) const;
};

}  // namespace welkin::parallel
