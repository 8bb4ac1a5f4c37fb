// SPDX-License-Identifier: Apache-2.0
// The part of every sample that this rank reads and scores: the whole sample; the patches of its own tokens, if
// context-parallel ranks share a sample; or its block, if spatial ranks do. Losses and errors are sums over own points, added
// over the ranks that share the sample.
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
  // For a plan whose input is split over axes of the mesh; a plan that reads whole samples gives the default. `spec` is a
  // field, or a box if the plan cuts it into blocks.
  SampleShard(const parallel::Plan& plan, const parallel::MeshGroups& groups, const data::SampleSpec& spec);

  bool is_whole() const { return group_.size() == 1; }
  std::optional<data::Region> region() const;  // for the loader; nothing if it reads whole samples

  // prediction, target (B, C, points that are read) -> (B) losses of the whole samples, the same on every rank that shares
  // them. Differentiable: each rank's backward pass gives the part of every gradient that comes from its own points.
  at::Tensor losses(const Loss& loss, const at::Tensor& prediction, const at::Tensor& target) const;
  // (B): true if any channel of the whole sample has a point with a value; the target is NaN at points without one.
  at::Tensor has_points(const at::Tensor& target) const;
  // (B, C) RMSE of whole samples of fields; `weights` (H) are those of all rows.
  at::Tensor rmse(const at::Tensor& prediction, const at::Tensor& target, const at::Tensor& weights) const;
  // The same over the points with a value; the target is NaN at the others.
  struct PointsRmse {
    at::Tensor rmse, has_points;  // (B, C): 0 and 0 if a channel of a sample has no point, else the RMSE and 1
  };
  PointsRmse rmse_of_points(const at::Tensor& prediction, const at::Tensor& target, const at::Tensor& weights) const;
  // (B, C, points that are read) -> (B): 1 if a value of the whole sample is not finite, else 0; the same on every rank that
  // shares the sample. Every such rank calls it.
  at::Tensor nonfinite(const at::Tensor& values) const;
  // (..., points that are read) -> (..., all points), of every rank's own points. Every rank that shares the sample calls it.
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
  Piece read_;                 // the part of the sample that is read
  std::vector<Piece> own_;
};

}  // namespace welkin::train
