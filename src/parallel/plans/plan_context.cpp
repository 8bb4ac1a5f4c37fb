// SPDX-License-Identifier: Apache-2.0
#include "parallel/plans/plan_context.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "parallel/shard/shards.h"

namespace welkin::parallel {
namespace {

// The shard keeps the memory order of the whole: kernels read weights of convolutions in their own order.
at::Tensor shard_in_order_of(const at::Tensor& whole, Shard shard, const Group& group) {
  const at::Tensor like = whole.narrow(shard.dim, 0, whole.size(shard.dim) / group.size());
  return at::empty_like(like, at::MemoryFormat::Preserve).copy_(shard_of(whole, shard, group.group_rank(), group.size()));
}

void check_divides(const ParamRow& row, Shard shard, Axis axis, int64_t size) {
  const int64_t extent = row.global_shape.at(static_cast<size_t>(shard.dim));
  if (extent % (shard.parts * size) == 0) return;
  throw ConfigError(
      "parallel",
      cat("a layer does not divide: parameter=", row.name, ", extent=", extent / shard.parts, ", ", axis_name(axis), "=", size),
      cat("Sizes of ", axis_name(axis), " that work: ", divisors_text(extent / shard.parts)));
}

}  // namespace

std::vector<TokenSplit::Level> PlanContext::inner_levels() const {
  return {tokens.levels().begin() + static_cast<std::ptrdiff_t>(plan.input_axes.size()), tokens.levels().end()};
}

const ParallelStyle* PlanContext::style_of(const std::string& name) const {
  const auto row = std::ranges::find_if(plan.rows, [&](const PlanRow& each) { return matches_pattern(each.pattern, name); });
  return row == plan.rows.end() ? nullptr : &row->style;
}

std::shared_ptr<ColumnInput> PlanContext::column_input_near(const model::Site& site, Axis axis) {
  const Group& group = groups.along(axis);
  if (group.size() == 1) return nullptr;
  std::shared_ptr<ColumnInput>& input = column_inputs[cat(home_of(site), axis_name(axis))];
  if (!input) {
    const TokenSplit::Level* level = tokens.level(axis);
    input = std::make_shared<ColumnInput>(group, level == nullptr ? std::nullopt : std::optional(level->lengths), weights);
  }
  return input;
}

void PlanContext::split_parameter(ParamRow& row, Shard shard, Axis axis) {
  const Group& group = groups.along(axis);
  if (group.size() == 1) return;
  const at::NoGradGuard no_grad;
  check_divides(row, shard, axis, group.size());
  row.placements[axis] = shard;
  row.local.set_data(shard_in_order_of(row.local.detach(), shard, group));
}

std::string home_of(const model::Site& site) { return site.name().substr(0, site.name().rfind('.') + 1); }

std::string divisors_text(int64_t number) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= number; ++d) {
    if (number % d == 0) divisors.push_back(d);
  }
  return join(divisors, ", ");
}

}  // namespace welkin::parallel
