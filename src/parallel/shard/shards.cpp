// SPDX-License-Identifier: Apache-2.0
#include "parallel/shard/shards.h"

#include <ATen/ops/cat.h>

#include "core/error.h"

namespace welkin::parallel {

at::Tensor shard_of(const at::Tensor& whole, Shard shard, int64_t place, int64_t size) {
  const int64_t block = whole.size(shard.dim) / shard.parts;
  WELKIN_CHECK(whole.size(shard.dim) % (shard.parts * size) == 0, "a split dim divides by its parts and members");
  std::vector<at::Tensor> pieces;
  for (int64_t part = 0; part < shard.parts; ++part) {
    pieces.push_back(whole.narrow(shard.dim, part * block + place * (block / size), block / size));
  }
  return at::cat(pieces, shard.dim);
}

at::Tensor join_shards(const std::vector<at::Tensor>& parts, Shard shard) {
  std::vector<at::Tensor> pieces;
  for (int64_t block = 0; block < shard.parts; ++block) {
    for (const at::Tensor& part : parts) {
      const int64_t length = part.size(shard.dim) / shard.parts;
      pieces.push_back(part.narrow(shard.dim, block * length, length));
    }
  }
  return at::cat(pieces, shard.dim);
}

std::vector<ShardSlice> slices_of(const ParamRow& row, const Mesh& mesh, int64_t rank) {
  const std::vector<int64_t> zeros(row.global_shape.size(), 0);
  std::vector<ShardSlice> slices{{zeros, zeros, row.global_shape}};
  for (size_t a = 0; a < kNumAxes; ++a) {
    const Axis axis = static_cast<Axis>(a);
    const Placement& placement = row.placements[axis];
    if (!placement.sharded() || mesh.size(axis) == 1) continue;
    WELKIN_CHECK(slices.size() == 1 && slices[0].shape == row.global_shape, "a parameter is split over one axis");
    const auto dim = static_cast<size_t>(placement.dim());
    const int64_t block = row.global_shape[dim] / placement.parts();
    const int64_t length = block / mesh.size(axis);
    slices.assign(static_cast<size_t>(placement.parts()), slices[0]);
    for (int64_t part = 0; part < placement.parts(); ++part) {
      ShardSlice& slice = slices[static_cast<size_t>(part)];
      slice.shape[dim] = length;
      slice.local_offset[dim] = part * length;
      slice.global_offset[dim] = part * block + mesh.coordinate(rank, axis) * length;
    }
  }
  return slices;
}

bool is_first_holder(const ParamRow& row, const Mesh& mesh, int64_t rank) {
  for (size_t a = 0; a < kNumAxes; ++a) {
    const Axis axis = static_cast<Axis>(a);
    if (!row.placements[axis].sharded() && mesh.coordinate(rank, axis) != 0) return false;
  }
  return true;
}

}  // namespace welkin::parallel
