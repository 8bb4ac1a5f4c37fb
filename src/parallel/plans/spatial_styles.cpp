// SPDX-License-Identifier: Apache-2.0
#include "parallel/plans/spatial_styles.h"

#include <memory>
#include <vector>

#include "parallel/plans/plan_context.h"
#include "parallel/spatial/halo_convolution.h"
#include "parallel/spatial/sample_blocks.h"

namespace welkin::parallel {
namespace {

BlockLayer layer_between(const BlockGrid& in, const BlockGrid& out, const model::BoxConvolution& layer) {
  BlockLayer blocks{.in = in, .out = out};
  for (size_t a = 0; a < kSpaceAxes; ++a) {
    blocks.rules[a] = {.kernel = layer.weight.size(2 + static_cast<int64_t>(a)),
                       .stride = model::BoxConvolution::kRule.stride[a],
                       .padding = model::BoxConvolution::kRule.padding[a],
                       .transposed = layer.is_transposed()};
  }
  return blocks;
}

}  // namespace

void HaloConvolution::split(const PlanContext& context, model::BoxConvolution& layer) const {
  const Mesh& mesh = context.groups.mesh();
  const Group& group = context.groups.along(kSpatial);
  const auto plan =
      std::make_shared<const HaloPlan>(halo_plan(layer_between(grid_of(in_cells, mesh), grid_of(out_cells, mesh), layer),
                                                 coordinates_of(group.ranks(), mesh), group.group_rank()));
  layer.on_blocks = [group, plan, &layer](const model::Tensors& x, const model::BoxConvolution::Place& place) {
    return halo_convolution(group, plan, x, {layer.weight, layer.bias}, layer.bias.size(0), place);
  };
}

}  // namespace welkin::parallel
