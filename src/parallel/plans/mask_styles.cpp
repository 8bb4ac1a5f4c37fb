// SPDX-License-Identifier: Apache-2.0
#include "parallel/plans/mask_styles.h"

#include <optional>

#include "core/error.h"
#include "parallel/plans/plan_context.h"

namespace welkin::parallel {
namespace {

// The tokens of a block, whose grid is seen as rows and columns.
struct GridWindow {
  TokenBlock block;
  int64_t rows = 0, columns = 0;  // of the whole grid

  // For (B, tokens, features): a part of `all_features`, from `first` on.
  ops::MaskWindow of(at::IntArrayRef shape, int64_t all_features, int64_t first) const {
    WELKIN_CHECK(shape[1] == block.num_tokens(), "masks of tokens are drawn for whole blocks");
    const int64_t features = shape[2];
    return {.global_shape = {rows, columns, all_features},
            .offset = {block.rows.begin, block.columns.begin, first},
            .local_shape = {block.rows.size(), block.columns.size(), features}};
  }
};

// Nothing if the member has a run of tokens.
std::optional<GridWindow> grid_window(const PlanContext& context) {
  const TokenBlock* block = context.tokens.own_block();
  if (block == nullptr) return {};
  const int64_t columns = context.plan.tokens_per_row;
  return GridWindow{*block, context.plan.num_tokens / columns, columns};
}

}  // namespace

model::Dropout::WindowOf TokenMask::window(const PlanContext& context) const {
  if (const auto grid = grid_window(context)) {
    return [grid = *grid](at::IntArrayRef shape) { return grid.of(shape, shape[2], 0); };
  }
  return [total = context.tokens.num_tokens(), offset = context.tokens.offset()](at::IntArrayRef shape) {
    return ops::MaskWindow{{total, shape[2]}, {offset, 0}};
  };
}

model::Dropout::WindowOf ColumnMask::window(const PlanContext& context) const {
  const Group& group = context.groups.along(axis);
  const int64_t size = group.size(), place = group.group_rank();
  if (const auto grid = grid_window(context)) {
    return [grid = *grid, size, place](at::IntArrayRef shape) { return grid.of(shape, shape[2] * size, place * shape[2]); };
  }
  return [total = context.tokens.num_tokens(), offset = context.tokens.offset_without(axis), size, place](at::IntArrayRef shape) {
    return ops::MaskWindow{{total, shape[2] * size}, {offset, place * shape[2]}};
  };
}

model::Dropout::WindowOf AttentionMask::window(const PlanContext& context) const {
  const Group& head_group = context.groups.along(heads);
  const Group& context_group = context.groups.along(tokens);
  const bool all_to_all = mode == ContextMode::AllToAll;
  const int64_t all_to_all_size = all_to_all ? context_group.size() : 1;
  const int64_t all_to_all_rank = all_to_all ? context_group.group_rank() : 0;
  const int64_t query = all_to_all ? 0 : context.tokens.offset_without(heads);
  return [total = context.tokens.num_tokens(), query, head_group, all_to_all_size, all_to_all_rank](at::IntArrayRef shape) {
    return ops::MaskWindow{{shape[1] * all_to_all_size * head_group.size(), total, total},
                           {(head_group.group_rank() * all_to_all_size + all_to_all_rank) * shape[1], query, 0}};
  };
}

}  // namespace welkin::parallel
