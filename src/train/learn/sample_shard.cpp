// SPDX-License-Identifier: Apache-2.0
#include "train/learn/sample_shard.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include "parallel/comm/collectives.h"
#include "parallel/comm/differentiable.h"
#include "parallel/tokens/token_split.h"
#include "train/learn/metrics.h"

namespace welkin::train {

SampleShard::SampleShard(const parallel::Plan& plan, const parallel::MeshGroups& groups, const data::SampleSpec& spec) {
  if (plan.input_axes.empty()) return;
  const parallel::TokenSplit tokens(plan.num_tokens, plan.input_axes, groups);
  const parallel::FieldShard share = parallel::field_shard(tokens.offset(), tokens.num_own(), plan.tokens_per_row);
  group_ = tokens.levels().back().group;
  height_ = spec.target.shape.at(1);
  width_ = spec.target.shape.at(2);
  const int64_t patch = width_ / plan.tokens_per_row;
  first_row_ = share.first_row * patch;
  num_rows_ = share.num_rows * patch;
  for (const auto& piece : share.own) {
    own_.push_back({piece.row * patch, piece.column * patch, piece.rows * patch, piece.columns * patch});
  }
}

std::optional<data::Region> SampleShard::region() const {
  if (is_whole()) return {};
  return data::Region{.begin = {first_row_, 0, 0}, .extent = {num_rows_, width_, 1}};
}

at::Tensor SampleShard::cut(const at::Tensor& values, const Piece& piece) const {
  return values.narrow(-2, piece.row, piece.rows).narrow(-1, piece.column, piece.columns);
}

at::Tensor SampleShard::losses(const Loss& loss, const at::Tensor& prediction, const at::Tensor& target) const {
  if (is_whole()) return loss.per_sample(prediction, target);
  at::Tensor sums;
  for (const Piece& piece : own_) {
    const at::Tensor part = loss.partial(cut(prediction, piece), cut(target, piece));
    sums = sums.defined() ? sums + part : part;
  }
  return loss.finish(parallel::reduce_from_group(group_, sums));
}

at::Tensor SampleShard::rmse(const at::Tensor& prediction, const at::Tensor& target, const at::Tensor& weights) const {
  const int64_t num_points = weights.size(0) * target.size(-1);
  if (is_whole()) return weighted_rmse(weighted_sums(prediction, target, weights), num_points);
  WeightedSums sums;
  for (const Piece& piece : own_) {
    const at::Tensor rows = weights.narrow(0, first_row_ + piece.row, piece.rows);
    const at::Tensor part = weighted_sums(cut(prediction, piece), cut(target, piece), rows).square_error;
    sums.square_error = sums.square_error.defined() ? sums.square_error + part : part;
  }
  sums.square_error = all_reduce(group_, sums.square_error);
  return weighted_rmse(sums, num_points);
}

at::Tensor SampleShard::whole_fields(const at::Tensor& values) const {
  if (is_whole()) return values;
  const at::NoGradGuard no_grad;
  std::vector<int64_t> sizes = values.sizes().vec();
  sizes[sizes.size() - 2] = height_;
  const at::Tensor whole = at::zeros(sizes, values.options().requires_grad(false));
  for (const Piece& piece : own_) {
    cut(whole.narrow(-2, first_row_, num_rows_), piece).copy_(cut(values, piece));
  }
  return all_reduce(group_, whole);
}

}  // namespace welkin::train
