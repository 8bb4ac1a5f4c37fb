// SPDX-License-Identifier: Apache-2.0
// Runs work that needs whole parameters where ranks hold parts of them. Each whole is made on one of the ranks, and every rank
// has a different one at the same time, so that work and memory are shared (Liu et al. 2025, arXiv:2502.16982, section 2.3). It
// knows neither the values nor their use.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "parallel/comm/mesh_groups.h"
#include "parallel/shard/param_table.h"

namespace welkin::parallel {

// Functions take the row's index in the list.
struct WholeWork {
  std::function<at::Tensor(size_t)> part;                     // this rank's part, shaped like the trained values; called once
  std::function<at::Tensor(size_t, const at::Tensor&)> body;  // maps a whole to a result of the same shape; called on one rank
  std::function<void(size_t, const at::Tensor&)> take;        // takes this rank's part of the body's result
};

// For each of `rows` of the table: split over tp, in pieces over `shards`, both, or neither. Every rank of these groups calls
// it with the same rows; values have one type. The whole has the memory order of the row's parameter if tp does not split
// it.
void each_whole(const ParamTable& table, const std::vector<size_t>& rows, const MeshGroups& groups, const Group& shards,
                const WholeWork& work);

}  // namespace welkin::parallel
