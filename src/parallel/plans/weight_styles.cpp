// SPDX-License-Identifier: Apache-2.0
#include "parallel/plans/weight_styles.h"

#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "parallel/comm/differentiable.h"
#include "parallel/plans/plan_context.h"
#include "parallel/tokens/channel_exchange.h"

namespace welkin::parallel {
namespace {

using model::Body;
using model::Tensors;

constexpr int64_t kChannelDim = 1;  // of (B, C, ...)
constexpr int64_t kFeatureDim = 2;  // of (B, N, C)

void check_units(const PlanContext& context, const std::string& site, const ColumnParallel& split) {
  const int64_t outputs = context.table.at(site + ".weight").global_shape.at(0);
  const int64_t size = context.groups.along(split.axis).size();
  const int64_t units = split.units > 0 ? split.units : outputs / split.parts;
  if (units % size == 0) return;
  throw ConfigError("parallel",
                    cat("a layer does not divide: layer=", site, split.units > 0 ? ", heads=" : ", outputs=", units, ", ",
                        axis_name(split.axis), "=", size),
                    cat("Sizes of ", axis_name(split.axis), " that work: ", divisors_text(units)));
}

// The bias of a row-parallel layer is not split: every member adds it after the sum.
void split_linear(PlanContext& context, const std::string& site, Shard weight, std::optional<Shard> bias, Axis axis) {
  for (ParamRow& row : context.table.rows()) {
    if (row.name == site + ".weight") context.split_parameter(row, weight, axis);
    if (row.name == site + ".bias" && bias) context.split_parameter(row, *bias, axis);
  }
}

}  // namespace

void ColumnParallelInput::install(PlanContext& context, model::Site& site) const {
  if (const auto input = context.column_input_near(site, axis)) {
    site.install([input](const Tensors& in, const Body& body) { return body({input->enter(in.at(0))}); });
  }
}

void ColumnParallel::install(PlanContext& context, model::Site& site) const {
  const Shard shard{0, parts};
  check_units(context, site.name(), *this);
  split_linear(context, site.name(), shard, shard, axis);
  if (const auto input = context.column_input_near(site, axis)) {
    site.install([input](Tensors in, const Body& body) -> Tensors {
      if (auto matmul = input->matmul(in.at(0), in.at(1))) return {*std::move(matmul)};
      return body(std::move(in));
    });
  }
}

void RowParallel::install(PlanContext& context, model::Site& site) const {
  split_linear(context, site.name(), Shard{1}, std::nullopt, axis);
  const TokenSplit::Level* level = context.tokens.level(axis);
  std::optional<Lengths> lengths;
  if (level != nullptr) lengths = level->lengths;
  site.install([group = context.groups.along(axis), lengths = std::move(lengths)](Tensors in, const Body& body) -> Tensors {
    const at::Tensor matmul = body(std::move(in)).at(0);
    if (!lengths) return {reduce_from_group(group, matmul)};
    return {reduce_scatter_autograd(group, matmul, kTokenDim, *lengths)};
  });
}

void GatheredChannels::install(PlanContext& context, model::Site& site) const {
  const Group& group = context.groups.along(axis);
  if (group.size() == 1) return;
  int64_t channels = 0;
  for (ParamRow& row : context.table.rows()) {
    if (!row.name.starts_with(site.name() + ".")) continue;
    const Shard shard{row.global_shape.size() > 1 ? weight_dim : 0};
    context.split_parameter(row, shard, axis);
    channels = row.global_shape.at(static_cast<size_t>(shard.dim));
  }
  site.install([group, lengths = Lengths(static_cast<size_t>(group.size()), channels / group.size())](
                   Tensors in, const Body& body) -> Tensors {
    for (at::Tensor& x : in) x = copy_to_group(group, x);
    return {gather_from_group(group, body(std::move(in)).at(0), kChannelDim, lengths)};
  });
}

void GroupedChannels::install(PlanContext& context, model::Site& site) const {
  const Group& group = context.groups.along(axis);
  if (group.size() == 1) return;
  for (ParamRow& row : context.table.rows()) {
    if (row.name.starts_with(site.name() + ".")) context.split_parameter(row, Shard{group_dim}, axis);
  }
  if (const TokenSplit::Level* level = context.tokens.level(axis)) {  // no member has all tokens
    site.install([level = *level](Tensors in, const Body& body) -> Tensors {
      in.front() = channels_of_all_tokens(level, in.front());
      return {tokens_of_all_channels(level, body(std::move(in)).at(0))};
    });
    return;
  }
  site.install([group](Tensors in, const Body& body) -> Tensors {
    const Lengths lengths(static_cast<size_t>(group.size()), in.at(0).size(-1) / group.size());
    in.front() = split_to_group(group, in.front(), kFeatureDim, lengths);
    return {gather_from_group(group, body(std::move(in)).at(0), kFeatureDim, lengths)};
  });
}

void SplitParameter::install(PlanContext& context, model::Site& site) const {
  context.split_parameter(context.table.at(site.name()), Shard{dim}, axis);
}

}  // namespace welkin::parallel
