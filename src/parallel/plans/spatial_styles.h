// SPDX-License-Identifier: Apache-2.0
// Parallel styles of layers on samples that are cut into blocks over the axes d, h, w. A field is a box of one point along d.
#pragma once

#include "model/base/site.h"
#include "model/layers/instance_norm.h"
#include "model/layers/local_layer.h"
#include "parallel/comm/collectives.h"
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

// A spherical transform of fields (B, C, rows, W) of which each member has some rows, at the site that makes coefficients (B, C,
// degrees, M, 2) and the field on the grid of the result: a member transforms some channels of all rows, and gives its degrees of
// all channels and its rows of the result's grid. Channels divide by the group; lengths are those of the members.
struct SphereAnalysis {
  Lengths from_rows, to_rows, degrees;

  void install(PlanContext& context, model::Site& site) const;
};

// The matrices of a member's degrees, out of a weight (C, C', degrees, 2) that the site has as its second tensor.
struct DegreeWeights {
  Lengths degrees;

  void install(PlanContext& context, model::Site& site) const;
};

// Back from coefficients of a member's degrees to its rows of the field.
struct SphereSynthesis {
  Lengths degrees, to_rows;

  void install(PlanContext& context, model::Site& site) const;
};

}  // namespace welkin::parallel
