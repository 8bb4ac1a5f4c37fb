// SPDX-License-Identifier: Apache-2.0
// The placement of a tensor on the mesh: for each axis replicated, or split along one of its dims.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "parallel/mesh/axis.h"

namespace welkin::parallel {

struct Replicate {
  bool operator==(const Replicate&) const = default;
};

// `parts`: the dim consists of that many equal blocks (q, k and v of a joint projection), each of which is split.
struct Shard {
  int64_t dim = 0;
  int64_t parts = 1;
  bool operator==(const Shard&) const = default;
};

class Placement {
 public:
  Placement() = default;  // replicated

  Placement(Replicate) {}                    // NOLINT: reads as data in tables
  Placement(Shard shard) : shard_(shard) {}  // NOLINT

  bool sharded() const { return shard_.has_value(); }
  int64_t dim() const { return shard_->dim; }      // only when sharded
  int64_t parts() const { return shard_->parts; }  // only when sharded
  bool operator==(const Placement&) const = default;

 private:
  std::optional<Shard> shard_;
};

// One entry per axis.
class Placements {
 public:
  Placement& operator[](Axis axis) { return by_axis_[static_cast<size_t>(axis)]; }
  const Placement& operator[](Axis axis) const { return by_axis_[static_cast<size_t>(axis)]; }
  bool operator==(const Placements&) const = default;

 private:
  std::array<Placement, kNumAxes> by_axis_{};
};

}  // namespace welkin::parallel
