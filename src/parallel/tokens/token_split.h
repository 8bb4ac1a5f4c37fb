// SPDX-License-Identifier: Apache-2.0
// The tokens of a sample that a member has: split over one axis, and each part again over the next.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel/comm/collectives.h"
#include "parallel/comm/mesh_groups.h"

namespace welkin::parallel {

class TokenSplit {
 public:
  struct Level {
    Axis axis;
    Group group;
    Lengths lengths;  // of the members, within this member's part of the level before
  };

  TokenSplit() = default;
  // ConfigError when there are fewer tokens than members.
  TokenSplit(int64_t num_tokens, const std::vector<Axis>& axes, const MeshGroups& groups);

  int64_t num_tokens() const { return num_tokens_; }  // of the whole
  const std::vector<Level>& levels() const { return levels_; }
  const Level* level(Axis axis) const;  // null: not split over it
  // The first own token in the whole; with an axis, of all tokens of this member's group along it.
  int64_t offset() const;
  int64_t offset_without(Axis innermost) const;
  int64_t num_own() const;
  int64_t num_of(size_t depth) const;  // tokens of this member's group after `depth` levels

 private:
  int64_t num_tokens_ = 0;
  std::vector<Level> levels_;
};

}  // namespace welkin::parallel
