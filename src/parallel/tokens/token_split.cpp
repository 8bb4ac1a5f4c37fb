// SPDX-License-Identifier: Apache-2.0
#include "parallel/tokens/token_split.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "parallel/shard/split.h"

namespace welkin::parallel {

TokenSplit::TokenSplit(int64_t num_tokens, const std::vector<AxisSet>& axes, const MeshGroups& groups, int64_t columns)
    : num_tokens_(num_tokens) {
  int64_t own = num_tokens;
  for (const AxisSet each : axes) {
    const Group& group = groups.along(each);
    if (own < group.size()) {
      throw ConfigError("parallel",
                        cat("fewer tokens than ranks to share them: tokens=", own, " of ", num_tokens, ", ", axes_text(each), "=",
                            group.size()),
                        cat("Take ", axes_text(each), " of at most ", own, ", or smaller patches"));
    }
    const bool is_of_blocks = each.contains(Axis::W) && groups.mesh().size(Axis::W) > 1;
    if (is_of_blocks) {
      WELKIN_CHECK(levels_.empty() && columns > 0, "blocks are cut first, from a grid of which the columns are known");
      TokenBlocks blocks = token_blocks(num_tokens / columns, columns, group.ranks(), groups.mesh());
      levels_.push_back({each, group, blocks.lengths(), std::move(blocks)});
    } else {
      levels_.push_back({each, group, balanced_split(own, group.size())});
    }
    own = levels_.back().lengths[static_cast<size_t>(group.group_rank())];
  }
}

const TokenSplit::Level* TokenSplit::level(AxisSet axes) const {
  const auto found = std::find_if(levels_.begin(), levels_.end(), [&](const Level& level) { return level.axes == axes; });
  return found == levels_.end() ? nullptr : &*found;
}

int64_t TokenSplit::offset() const {
  int64_t offset = 0;
  for (const Level& level : levels_) offset += split_offset(level.lengths, level.group.group_rank());
  return offset;
}

int64_t TokenSplit::offset_without(AxisSet innermost) const {
  const Level* last = level(innermost);
  return offset() - (last == nullptr ? 0 : split_offset(last->lengths, last->group.group_rank()));
}

int64_t TokenSplit::num_own() const { return num_of(levels_.size()); }

int64_t TokenSplit::num_of(size_t depth) const {
  if (depth == 0) return num_tokens_;
  const Level& last = levels_.at(depth - 1);
  return last.lengths[static_cast<size_t>(last.group.group_rank())];
}

}  // namespace welkin::parallel
