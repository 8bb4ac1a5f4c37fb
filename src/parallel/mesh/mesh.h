// SPDX-License-Identifier: Apache-2.0
// The mesh of ranks: named axes with sizes, the order in which ranks run through them, and the groups along any set of axes.
// Pure arithmetic: it determines groups, not communication. A group of one is a group like any other.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "parallel/mesh/axis.h"

namespace welkin::parallel {

struct MeshSizes {
  int64_t dp_replicate = 1, dp_shard = 1;
  int64_t tp = 1, cp = 1, pp = 1;
  int64_t h = 1, w = 1, d = 1;
};

// The ranks along a set of axes through one rank, in the order of the mesh, and the place of that rank among them.
struct GroupMembers {
  std::vector<int64_t> ranks;
  int64_t place = 0;

  int64_t size() const { return static_cast<int64_t>(ranks.size()); }
};

class Mesh {
 public:
  // The mesh of one rank.
  Mesh() : Mesh("tp-cp-dp-pp", {}) {}

  // `order` names axes joined by '-', in any case. The first axis varies fastest with the rank: nearest ranks. `dp` stands for
  // both kinds of data parallelism, dp_shard faster. Axes not named go last and must have size 1. ConfigError otherwise.
  Mesh(const std::string& order, const MeshSizes& sizes);

  int64_t world_size() const { return world_size_; }
  int64_t size(AxisSet axes) const;  // number of ranks of one group along these axes
  int64_t coordinate(int64_t rank, Axis axis) const;
  // "tp 1, cp 0, dp_replicate 3": the axes larger than one; empty on a mesh of one rank.
  std::string coordinates_text(int64_t rank) const;

  // The axes in the order of the mesh, as text: "tp-cp-dp-pp".
  const std::string& order() const { return order_; }

  GroupMembers group_of(int64_t rank, AxisSet axes) const;
  // All groups along `axes`, listed by the coordinates of the other axes, fastest first.
  std::vector<std::vector<int64_t>> groups(AxisSet axes) const;

 private:
  struct Place {
    Axis axis;
    int64_t size;
    int64_t stride;  // distance of neighbours in ranks
  };
  void append(Axis axis, int64_t size);

  std::vector<Place> places_;  // fastest first, every axis once
  int64_t world_size_ = 1;
  std::string order_;
};

}  // namespace welkin::parallel
