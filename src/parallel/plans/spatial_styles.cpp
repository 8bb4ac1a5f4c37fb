// SPDX-License-Identifier: Apache-2.0
#include "parallel/plans/spatial_styles.h"

#include <memory>
#include <vector>

#include "parallel/plans/plan_context.h"
#include "parallel/spatial/block_norm.h"
#include "parallel/spatial/halo_convolution.h"
#include "parallel/spatial/sample_blocks.h"

namespace welkin::parallel {
namespace {

BlockLayer layer_between(const BlockGrid& in, const BlockGrid& out, const model::LocalRule& rule) {
  BlockLayer blocks{.in = in, .out = out};
  for (size_t a = 0; a < kSpaceAxes; ++a) {
    blocks.rules[a] = {
        .kernel = rule.kernel[a], .stride = rule.stride[a], .padding = rule.padding[a], .transposed = rule.is_transposed};
    blocks.periodic[a] = rule.periodic[a] && in.blocks[a] > 1;  // the layer goes around an axis that is not cut
  }
  return blocks;
}

}  // namespace

void HaloConvolution::split(const PlanContext& context, model::LocalLayer& layer) const {
  const Mesh& mesh = context.groups.mesh();
  const Group& group = context.groups.along(kSpatial);
  const auto plan =
      std::make_shared<const HaloPlan>(halo_plan(layer_between(grid_of(in_cells, mesh), grid_of(out_cells, mesh), layer.rule()),
                                                 coordinates_of(group.ranks(), mesh), group.group_rank()));
  layer.on_blocks = [group, plan, &layer](const model::Tensors& x, const model::LocalLayer::Place& place) {
    return halo_convolution(group, plan, x, layer.weights(), layer.num_channels(x), place);
  };
}

void BlockNorm::split(const PlanContext& context, model::InstanceNorm& layer) const {
  const int64_t num_points = cells[0] * cells[1] * cells[2];
  layer.of_block = [group = context.groups.along(kSpatial), num_points](const at::Tensor& x, const at::Tensor& weight,
                                                                        const at::Tensor& bias, double epsilon) {
    return block_norm(group, num_points, x, weight, bias, epsilon);
  };
}

}  // namespace welkin::parallel
