// SPDX-License-Identifier: Apache-2.0
// What of every sample this rank reads and scores: the whole, the patches of its own tokens, where context-parallel ranks share a
// sample, or its block, where spatial ranks do. Losses and errors are sums over own points, added over the ranks that share the
// sample.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "data/sample/dataset.h"
#include "parallel/comm/group.h"
#include "parallel/plans/plan.h"
#include "parallel/tokens/field_shard.h"
#include "train/learn/loss.h"
#include "train/learn/metrics.h"

namespace welkin::train {

class SampleShard {
 public:
  SampleShard() = default;  // whole samples
  // Of a plan whose input is split over axes of the mesh; a plan that reads whole samples gives the default. `spec`: a field, or
  // a box where the plan cuts it into blocks.
  SampleShard(const parallel::Plan& plan, const parallel::MeshGroups& groups, const data::SampleSpec& spec);

  bool is_whole() const { return group_.size() == 1; }
  std::optional<data::Region> region() const;  // for the loader; nothing where it reads whole samples

  // prediction, target (B, C, points that are read) -> (B) losses of the whole samples, the same on every rank that shares them.
  // Differentiable: each rank's backward pass gives its own points' part of every gradient.
  at::Tensor losses(const Loss& loss, const at::Tensor& prediction, const at::Tensor& target) const;
  // (B): whether a whole sample has a point with a value, which is not NaN in the target, in any channel.
  at::Tensor has_points(const at::Tensor& target) const;
  // (B, C) RMSE of the whole samples, fields; `weights` (H) are those of all rows.
  at::Tensor rmse(const at::Tensor& prediction, const at::Tensor& target, const at::Tensor& weights) const;
  // The same over the points with a value, which are not NaN in the target.
  struct PointsRmse {
    at::Tensor rmse, has_points;  // (B, C): 0 and 0 where a channel of a sample has no point, else the RMSE and 1
  };
  PointsRmse rmse_of_points(const at::Tensor& prediction, const at::Tensor& target, const at::Tensor& weights) const;
  // (B, C, points that are read) -> (B): 1 where a value of the whole sample is not finite, else 0; the same on every rank that
  // shares it. Every such rank calls it.
  at::Tensor nonfinite(const at::Tensor& values) const;
  // (..., points that are read) -> (..., all points), own points of every rank. Every rank that shares the sample calls it.
  at::Tensor whole_fields(const at::Tensor& values) const;

 private:
  // Own points within those that are read, along the last dims of a sample: rectangles of a field, the whole of a block.
  struct Piece {
    std::vector<int64_t> begin, extent;
  };
  static at::Tensor cut(const at::Tensor& values, const Piece& piece);
  WeightedSums whole_sums(const at::Tensor& prediction, const at::Tensor& target, const at::Tensor& weights, bool holes) const;
  void share_tokens(const parallel::Plan& plan, const parallel::MeshGroups& groups);
  void share_blocks(const parallel::Plan& plan, const parallel::MeshGroups& groups);

  parallel::Group group_;
  std::vector<int64_t> grid_;  // of the whole sample
  Piece read_;                 // of it
  std::vector<Piece> own_;
};

}  // namespace welkin::train
