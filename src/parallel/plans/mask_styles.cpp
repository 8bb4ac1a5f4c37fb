// SPDX-License-Identifier: Apache-2.0
#include "parallel/plans/mask_styles.h"

#include "parallel/plans/plan_context.h"

namespace welkin::parallel {

model::Dropout::WindowOf TokenMask::window(const PlanContext& context) const {
  return [total = context.tokens.num_tokens(), offset = context.tokens.offset()](at::IntArrayRef shape) {
    return ops::MaskWindow{{total, shape[2]}, {offset, 0}};
  };
}

model::Dropout::WindowOf ColumnMask::window(const PlanContext& context) const {
  const Group& group = context.groups.along(axis);
  return [total = context.tokens.num_tokens(), offset = context.tokens.offset_without(axis), size = group.size(),
          place = group.group_rank()](at::IntArrayRef shape) {
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
