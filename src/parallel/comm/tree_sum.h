// SPDX-License-Identifier: Apache-2.0
// A sum whose bits do not depend on how many ranks share the work: fixed units are added in a binary tree over the unit number,
// first those of a rank, then over the ranks from rank to rank. Rank r of R holds units [r * n, (r + 1) * n), n a power of two,
// R too.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "parallel/comm/group.h"

namespace welkin::parallel {

class TreeSum {
 public:
  explicit TreeSum(const Group& group) : group_(group) {}

  // The next unit of this rank: tensors of the same shapes in every unit, which are overwritten. Float32 or float64.
  void add(std::vector<at::Tensor> unit);

  // The sums over all units of all ranks, the same bits on each. Every rank calls it, after equally many units; it starts over.
  std::vector<at::Tensor> finish();

 private:
  struct Node {
    int64_t level = 0;
    std::vector<at::Tensor> sums;
  };
  void merge_last_two();

  Group group_;
  std::vector<Node> nodes_;  // of falling level
};

}  // namespace welkin::parallel
