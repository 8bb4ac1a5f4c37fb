// SPDX-License-Identifier: Apache-2.0
#include "parallel/plans/spatial_styles.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "parallel/comm/differentiable.h"
#include "parallel/plans/plan_context.h"
#include "parallel/spatial/block_norm.h"
#include "parallel/spatial/halo_convolution.h"
#include "parallel/spatial/sample_blocks.h"
#include "parallel/tokens/token_blocks.h"

namespace welkin::parallel {
namespace {

constexpr int64_t kFieldChannels = 1, kFieldPoints = 2, kDegreesDim = 2;  // dims of (B, C, points) and (B, C, L, M, 2)

Lengths equal_parts(const Group& group, int64_t extent) {
  return Lengths(static_cast<size_t>(group.size()), extent / group.size());
}

// From own points or degrees of all channels to all points or degrees of some channels.
at::Tensor to_channels(const Group& group, const at::Tensor& values, const Lengths& lengths) {
  return all_to_all_autograd(group, values,
                             {.split_dim = kFieldChannels,
                              .split_lengths = equal_parts(group, values.size(kFieldChannels)),
                              .join_dim = kFieldPoints,
                              .join_lengths = lengths});
}

at::Tensor from_channels(const Group& group, const at::Tensor& values, const Lengths& lengths) {
  return all_to_all_autograd(group, values,
                             {.split_dim = kFieldPoints,
                              .split_lengths = lengths,
                              .join_dim = kFieldChannels,
                              .join_lengths = Lengths(static_cast<size_t>(group.size()), values.size(kFieldChannels))});
}

// Exchanges blocks (B, C, rows, columns) of a grid for whole fields of some channels, and back.
class BlocksForChannels {
 public:
  BlocksForChannels(const PlanContext& context, const Cells& grid)
      : group_(context.groups.along(kSpatial)),
        columns_(grid[2]),
        has_whole_rows_(context.groups.mesh().size(Axis::W) == 1),
        blocks_(token_blocks(grid[1], columns_, group_.ranks(), context.groups.mesh())) {}

  at::Tensor to_channels(const at::Tensor& block) const {
    const at::Tensor points = parallel::to_channels(group_, block.flatten(kFieldPoints), blocks_.lengths());
    return (has_whole_rows_ ? points : blocks_to_rows(blocks_, points, kFieldPoints)).unflatten(kFieldPoints, {-1, columns_});
  }

  at::Tensor from_channels(const at::Tensor& field) const {
    const at::Tensor rows = field.flatten(kFieldPoints);
    const at::Tensor points = has_whole_rows_ ? rows : rows_to_blocks(blocks_, rows, kFieldPoints);
    const TokenBlock& own = blocks_.of_member[static_cast<size_t>(group_.group_rank())];
    return parallel::from_channels(group_, points, blocks_.lengths()).unflatten(kFieldPoints, {-1, own.columns.size()});
  }

 private:
  Group group_;
  int64_t columns_;
  bool has_whole_rows_;
  TokenBlocks blocks_;
};

// A separate piece costs a pass over the weights forward and two backward. For a layer that is periodic, every block has the
// pieces of both its ends.
bool is_better_in_one_piece(const model::LocalLayer& layer, const model::LocalRule& rule, const Block& held) {
  if (std::ranges::find(rule.periodic, true) != rule.periodic.end()) return true;
  const model::Tensors weights = layer.weights();
  if (weights.empty()) return false;
  return weights.front().numel() > weights.front().size(rule.is_transposed ? 0 : 1) * held.cells();
}

}  // namespace

BlockLayer layer_on_blocks(const HaloConvolution& style, const model::LocalRule& rule, const Mesh& mesh) {
  BlockLayer blocks{.in = grid_of(style.in_cells, mesh), .out = grid_of(style.out_cells, mesh)};
  for (size_t a = 0; a < kSpaceAxes; ++a) {
    blocks.rules[a] = {
        .kernel = rule.kernel[a], .stride = rule.stride[a], .padding = rule.padding[a], .transposed = rule.is_transposed};
    blocks.periodic[a] = rule.periodic[a];
  }
  return blocks;
}

void HaloConvolution::split(const PlanContext& context, model::LocalLayer& layer) const {
  const Mesh& mesh = context.groups.mesh();
  const Group& group = context.groups.along(kSpatial);
  const model::LocalRule rule = layer.rule();
  BlockLayer blocks = layer_on_blocks(*this, rule, mesh);
  const std::vector<Cells> coordinates = coordinates_of(group.ranks(), mesh);
  const auto place = static_cast<size_t>(group.group_rank());
  blocks.in_one_piece = is_better_in_one_piece(layer, rule, blocks.in.block(coordinates.at(place)));
  const auto plan = std::make_shared<const HaloPlan>(halo_plan(blocks, coordinates, group.group_rank()));
  layer.on_blocks = [group, plan, &layer](const model::Tensors& x, const ops::PieceKernel& kernel) {
    return halo_convolution(group, plan, x, layer.weights(), layer.num_channels(x), kernel);
  };
}

void SphereAnalysis::install(PlanContext& context, model::Site& site) const {
  site.install([group = context.groups.along(kSpatial), before = BlocksForChannels(context, from),
                after = BlocksForChannels(context, to),
                lengths = degrees](const model::Tensors& in, const model::Body& body) -> model::Tensors {
    const at::Tensor field = before.to_channels(in.at(0));
    const model::Tensors out = body({field});
    const bool is_unchanged = out.at(1).is_same(field);  // the result has the grid of the input
    return {from_channels(group, out.at(0), lengths), is_unchanged ? in.at(0) : after.from_channels(out.at(1))};
  });
}

void DegreeWeights::install(PlanContext& context, model::Site& site) const {
  const auto place = static_cast<size_t>(context.groups.along(kSpatial).group_rank());
  const int64_t first = std::accumulate(degrees.begin(), degrees.begin() + static_cast<std::ptrdiff_t>(place), int64_t{0});
  site.install([first, own = degrees.at(place)](const model::Tensors& in, const model::Body& body) {
    return body({in.at(0), in.at(1).narrow(kDegreesDim, first, own)});
  });
}

void SphereSynthesis::install(PlanContext& context, model::Site& site) const {
  site.install([group = context.groups.along(kSpatial), after = BlocksForChannels(context, to), lengths = degrees](
                   const model::Tensors& in, const model::Body& body) -> model::Tensors {
    return {after.from_channels(body({to_channels(group, in.at(0), lengths)}).at(0))};
  });
}

void BlockNorm::split(const PlanContext& context, model::InstanceNorm& layer) const {
  const int64_t num_points = cells[0] * cells[1] * cells[2];
  layer.of_block = [group = context.groups.along(kSpatial), num_points](const at::Tensor& x, const at::Tensor& weight,
                                                                        const at::Tensor& bias, double epsilon) {
    return block_norm(group, num_points, x, weight, bias, epsilon);
  };
}

}  // namespace welkin::parallel
