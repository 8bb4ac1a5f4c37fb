// SPDX-License-Identifier: Apache-2.0
// The tokens of a sample that a member has: split over one axis, or over blocks, and each part again over the next.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "parallel/comm/collectives.h"
#include "parallel/comm/mesh_groups.h"
#include "parallel/tokens/token_blocks.h"

namespace welkin::parallel {

class TokenSplit {
 public:
  struct Level {
    AxisSet axes;
    Group group;
    Lengths lengths;                         // of the members, within this member's part of the level before
    std::optional<TokenBlocks> blocks = {};  // nothing: runs of tokens in the rows of the grid

    const TokenBlock* own_block() const {
      return blocks ? &blocks->of_member.at(static_cast<size_t>(group.group_rank())) : nullptr;
    }
  };

  TokenSplit() = default;
  // The first level cuts blocks if it is over w; this needs `columns`, the patches of a row of the grid. ConfigError when there
  // are fewer tokens than members.
  TokenSplit(int64_t num_tokens, const std::vector<AxisSet>& axes, const MeshGroups& groups, int64_t columns = 0);

  int64_t num_tokens() const { return num_tokens_; }  // of the whole
  const std::vector<Level>& levels() const { return levels_; }
  const TokenBlock* own_block() const { return levels_.empty() ? nullptr : levels_.front().own_block(); }  // null: a run
  const Level* level(AxisSet axes) const;  // null: not split over them
  // The first own token, where members' tokens lie one behind the other; with an axis, of all of this member's group along it.
  int64_t offset() const;
  int64_t offset_without(AxisSet innermost) const;
  int64_t num_own() const;
  int64_t num_of(size_t depth) const;  // tokens of this member's group after `depth` levels

 private:
  int64_t num_tokens_ = 0;
  std::vector<Level> levels_;
};

}  // namespace welkin::parallel
