// SPDX-License-Identifier: Apache-2.0
#include "train/learn/sample_shard.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "core/error.h"
#include "parallel/comm/collectives.h"
#include "parallel/comm/differentiable.h"
#include "parallel/spatial/sample_blocks.h"
#include "parallel/tokens/token_split.h"

namespace welkin::train {

SampleShard::SampleShard(const parallel::Plan& plan, const parallel::MeshGroups& groups, const data::SampleSpec& spec) {
  grid_ = {spec.target.shape.begin() + 1, spec.target.shape.end()};
  if (!plan.input_axes.empty()) share_tokens(plan, groups);
  if (plan.blocks) share_blocks(plan, groups);
}

void SampleShard::share_tokens(const parallel::Plan& plan, const parallel::MeshGroups& groups) {
  const parallel::TokenSplit tokens(plan.num_tokens, plan.input_axes, groups, plan.tokens_per_row);
  const parallel::FieldShard share = parallel::field_shard(tokens, plan.tokens_per_row);
  group_ = tokens.levels().back().group;
  const int64_t patch = grid_.at(1) / plan.tokens_per_row;
  const bool reads_whole_rows = share.num_columns == plan.tokens_per_row;
  read_ = {{share.first_row * patch, share.first_column * patch},
           {share.num_rows * patch, reads_whole_rows ? grid_.at(1) : share.num_columns * patch}};
  for (const auto& piece : share.own) {
    own_.push_back({{piece.row * patch, piece.column * patch}, {piece.rows * patch, piece.columns * patch}});
  }
}

void SampleShard::share_blocks(const parallel::Plan& plan, const parallel::MeshGroups& groups) {
  group_ = groups.along(parallel::kSpatial);
  const parallel::Block block =
      parallel::grid_of(*plan.blocks, groups.mesh()).block(parallel::coordinates_of({groups.rank()}, groups.mesh()).front());
  for (size_t axis = parallel::kSpaceAxes - grid_.size(); axis < parallel::kSpaceAxes; ++axis) {  // a field has no depth axis
    read_.begin.push_back(block.axes[axis].begin);
    read_.extent.push_back(block.axes[axis].size());
  }
  own_.push_back({std::vector<int64_t>(grid_.size(), 0), read_.extent});
}

std::optional<data::Region> SampleShard::region() const {
  if (is_whole()) return {};
  data::Region region;
  std::copy(read_.begin.begin(), read_.begin.end(), region.begin.begin());
  std::copy(read_.extent.begin(), read_.extent.end(), region.extent.begin());
  return region;
}

at::Tensor SampleShard::cut(const at::Tensor& values, const Piece& piece) {
  const auto num_dims = static_cast<int64_t>(piece.begin.size());
  at::Tensor part = values;
  for (int64_t dim = -num_dims; dim < 0; ++dim) {
    const auto axis = static_cast<size_t>(num_dims + dim);
    if (piece.extent[axis] == part.size(dim)) continue;  // autograd would fill zeros and copy for an axis that is whole
    part = part.narrow(dim, piece.begin[axis], piece.extent[axis]);
  }
  return part;
}

at::Tensor SampleShard::losses(const Loss& loss, const at::Tensor& prediction, const at::Tensor& target) const {
  if (is_whole()) return loss.per_sample(prediction, target);
  at::Tensor sums;
  for (const Piece& piece : own_) {
    const int64_t row = grid_.size() == 2 ? read_.begin[0] + piece.begin[0] : 0;
    const at::Tensor part = loss.partial_from(row, cut(prediction, piece), cut(target, piece));
    sums = sums.defined() ? sums + part : part;
  }
  return loss.finish(parallel::reduce_from_group(group_, sums));
}

at::Tensor SampleShard::has_points(const at::Tensor& target) const {
  const auto count = [](const at::Tensor& values) { return at::isnan(values).logical_not().flatten(1).sum(1); };
  if (is_whole()) return count(target).gt(0);
  at::Tensor points = at::zeros({target.size(0)}, target.options().dtype(at::kLong));
  for (const Piece& piece : own_) points += count(cut(target, piece));
  return all_reduce(group_, points).gt(0);
}

// The sums of square errors, and the weights that they are divided by.
WeightedSums SampleShard::whole_sums(const at::Tensor& prediction, const at::Tensor& target, const at::Tensor& weights,
                                     bool holes) const {
  const auto sums_of = holes ? weighted_sums_of_points : weighted_sums;
  if (is_whole()) return sums_of(prediction, target, weights);
  WELKIN_CHECK(grid_.size() == 2, "rows of a field have weights");
  const auto add = [](at::Tensor& sum, const at::Tensor& part) { sum = sum.defined() ? sum + part : part; };
  WeightedSums sums;
  for (const Piece& piece : own_) {
    const at::Tensor rows = weights.narrow(0, read_.begin[0] + piece.begin[0], piece.extent[0]);
    const WeightedSums part = sums_of(cut(prediction, piece), cut(target, piece), rows);
    add(sums.square_error, part.square_error);
    if (holes) add(sums.weight, part.weight);
  }
  sums.square_error = all_reduce(group_, sums.square_error);
  if (holes) sums.weight = all_reduce(group_, sums.weight);
  return sums;
}

at::Tensor SampleShard::rmse(const at::Tensor& prediction, const at::Tensor& target, const at::Tensor& weights) const {
  const int64_t columns = is_whole() ? target.size(-1) : grid_.at(1);
  return weighted_rmse(whole_sums(prediction, target, weights, /*holes=*/false), weights.size(0) * columns);
}

SampleShard::PointsRmse SampleShard::rmse_of_points(const at::Tensor& prediction, const at::Tensor& target,
                                                    const at::Tensor& weights) const {
  const WeightedSums sums = whole_sums(prediction, target, weights, /*holes=*/true);
  const at::Tensor has_points = sums.weight.gt(0);
  const at::Tensor rmse = weighted_rmse(sums, /*num_points=*/0);
  return {at::where(has_points, rmse, at::zeros_like(rmse)), has_points};
}

at::Tensor SampleShard::nonfinite(const at::Tensor& values) const {
  const at::NoGradGuard no_grad;
  const auto found = [](const at::Tensor& part) { return at::isfinite(part).flatten(1).all(1).logical_not().to(at::kFloat); };
  if (is_whole()) return found(values);
  at::Tensor any = at::zeros({values.size(0)}, values.options().dtype(at::kFloat).requires_grad(false));
  for (const Piece& piece : own_) any = at::maximum(any, found(cut(values, piece)));
  return all_reduce(group_, any, parallel::Reduction::Max);
}

at::Tensor SampleShard::whole_fields(const at::Tensor& values) const {
  if (is_whole()) return values;
  const at::NoGradGuard no_grad;
  std::vector<int64_t> sizes = values.sizes().vec();
  std::copy(grid_.begin(), grid_.end(), sizes.end() - static_cast<std::ptrdiff_t>(grid_.size()));
  const at::Tensor whole = at::zeros(sizes, values.options().requires_grad(false));
  for (const Piece& piece : own_) cut(cut(whole, read_), piece).copy_(cut(values, piece));
  return all_reduce(group_, whole);
}

}  // namespace welkin::train
