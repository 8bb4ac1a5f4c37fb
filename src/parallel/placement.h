// SPDX-License-Identifier: Apache-2.0
// How a tensor lies on the mesh: for each axis replicated, or split along one of its dims.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "parallel/axis.h"

namespace welkin::parallel {

struct Replicate {
  bool operator==(const Replicate&) const = default;
};

struct Shard {
  int64_t dim = 0;
  bool operator==(const Shard&) const = default;
};

class Placement {
 public:
  Placement() = default;  // replicated

  Placement(Replicate) {}                      // NOLINT: reads as data in tables
  Placement(Shard shard) : dim_(shard.dim) {}  // NOLINT

  bool sharded() const { return dim_.has_value(); }
  int64_t dim() const { return *dim_; }  // only when sharded
  bool operator==(const Placement&) const = default;

 private:
  std::optional<int64_t> dim_;
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
