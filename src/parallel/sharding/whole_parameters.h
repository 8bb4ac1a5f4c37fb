// SPDX-License-Identifier: Apache-2.0
// What needs a whole parameter where ranks hold parts of it: each whole is made on one of these ranks, and every rank has another
// one at the same time, so that work and memory are shared out (Liu et al. 2025, arXiv:2502.16982, section 2.3). It knows neither
// what is made whole nor why.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "parallel/comm/mesh_groups.h"
#include "parallel/shard/param_table.h"

namespace welkin::parallel {

// By number of the row in the list.
struct WholeWork {
  std::function<at::Tensor(size_t)> part;                     // this rank's, shaped as what it trains; asked for once
  std::function<at::Tensor(size_t, const at::Tensor&)> body;  // of a whole, of the same shape: on one rank
  std::function<void(size_t, const at::Tensor&)> take;        // this rank's part of what the body returned
};

// For each of `rows` of the table: split over tp, in pieces over `shards`, both, or neither. Every rank of these groups calls it
// with the same rows; values are of one type. The whole has the order of memory of the row's parameter where tp does not split
// it.
void each_whole(const ParamTable& table, const std::vector<size_t>& rows, const MeshGroups& groups, const Group& shards,
                const WholeWork& work);

}  // namespace welkin::parallel
