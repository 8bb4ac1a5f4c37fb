// SPDX-License-Identifier: Apache-2.0
// What of every sample this rank reads and scores: the whole, or the patches of its own tokens, where context-parallel ranks
// share a sample. Losses and errors are sums over own points, added over the ranks that share the sample.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "data/sample/dataset.h"
#include "parallel/comm/group.h"
#include "parallel/plans/plan.h"
#include "parallel/tokens/field_shard.h"
#include "train/learn/loss.h"

namespace welkin::train {

class SampleShard {
 public:
  SampleShard() = default;  // whole samples
  // Of a plan whose input is split over axes of the mesh; a plan that reads whole samples gives the default. `spec`: a field.
  SampleShard(const parallel::Plan& plan, const parallel::MeshGroups& groups, const data::SampleSpec& spec);

  bool is_whole() const { return group_.size() == 1; }
  std::optional<data::Region> region() const;  // for the loader; nothing where it reads whole samples

  // prediction, target (B, C, rows that are read, W) -> (B) losses of the whole samples, the same on every rank that shares them.
  // Differentiable: each rank's backward pass gives its own points' part of every gradient.
  at::Tensor losses(const Loss& loss, const at::Tensor& prediction, const at::Tensor& target) const;
  // (B, C) RMSE of the whole samples; `weights` (H) are those of all rows.
  at::Tensor rmse(const at::Tensor& prediction, const at::Tensor& target, const at::Tensor& weights) const;
  // (..., rows that are read, W) -> (..., H, W), own points of every rank. Every rank that shares the sample calls it.
  at::Tensor whole_fields(const at::Tensor& values) const;

 private:
  // Own rectangles in grid points, within the rows that are read.
  struct Piece {
    int64_t row, column, rows, columns;
  };
  at::Tensor cut(const at::Tensor& values, const Piece& piece) const;

  parallel::Group group_;
  std::vector<Piece> own_;
  int64_t first_row_ = 0, num_rows_ = 0, height_ = 0, width_ = 0;
};

}  // namespace welkin::train
