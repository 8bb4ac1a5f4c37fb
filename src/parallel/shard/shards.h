// SPDX-License-Identifier: Apache-2.0
// The part of a parameter that a member holds, and where its pieces lie in the whole: for sharding, files and comparisons.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "parallel/mesh/mesh.h"
#include "parallel/shard/param_table.h"

namespace welkin::parallel {

// The part of `whole` at `place` of `size` members: a copy, contiguous. The dim divides.
at::Tensor shard_of(const at::Tensor& whole, Shard shard, int64_t place, int64_t size);

// The inverse: the members' parts in order -> the whole.
at::Tensor join_shards(const std::vector<at::Tensor>& parts, Shard shard);

// A box of a local tensor and the place of its first element in the whole parameter; every local element is in one slice.
struct ShardSlice {
  std::vector<int64_t> local_offset, global_offset, shape;
};
std::vector<ShardSlice> slices_of(const ParamRow& row, const Mesh& mesh, int64_t rank);

// Whether this rank is the primary holder of its shard: place 0 along every axis that does not split the parameter.
bool is_first_holder(const ParamRow& row, const Mesh& mesh, int64_t rank);

}  // namespace welkin::parallel
