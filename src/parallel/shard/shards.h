// SPDX-License-Identifier: Apache-2.0
// A member's part of a parameter, and the offsets of its pieces in the whole: for sharding, files and comparisons.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "parallel/mesh/mesh.h"
#include "parallel/shard/param_table.h"

namespace welkin::parallel {

// The part of `whole` at index `place` of `size` members: a contiguous copy. The dim must divide.
at::Tensor shard_of(const at::Tensor& whole, Shard shard, int64_t place, int64_t size);

// The inverse: the members' parts in order -> the whole.
at::Tensor join_shards(const std::vector<at::Tensor>& parts, Shard shard);

// A box of a local tensor and its first element's position in the whole parameter; every local element is in one slice.
struct ShardSlice {
  std::vector<int64_t> local_offset, global_offset, shape;
};
std::vector<ShardSlice> slices_of(const ParamRow& row, const Mesh& mesh, int64_t rank);

// True if this rank is the primary holder of its shard: coordinate 0 along every axis that does not split the parameter.
bool is_first_holder(const ParamRow& row, const Mesh& mesh, int64_t rank);

}  // namespace welkin::parallel
