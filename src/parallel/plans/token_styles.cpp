// SPDX-License-Identifier: Apache-2.0
#include "parallel/plans/token_styles.h"

#include <ATen/ops/constant_pad_nd.h>

#include <utility>

#include "core/error.h"
#include "parallel/comm/differentiable.h"
#include "parallel/plans/plan_context.h"
#include "parallel/tokens/channel_exchange.h"
#include "parallel/tokens/field_shard.h"
#include "parallel/tokens/ring_attention.h"

namespace welkin::parallel {
namespace {

using model::Body;
using model::Tensors;

// The masks of a ring, from the tensors that the model adds to q, k and v while dropout is active.
RingDropout ring_dropout(const model::Dropout* layer, const Tensors& in) {
  constexpr size_t kStep = 3, kSample = 4, kStream = 5;
  if (in.size() <= kStream) return {};
  WELKIN_CHECK(layer != nullptr, "a ring with dropout knows the layer whose masks it makes");
  return {.rate = layer->rate(),
          .key = {static_cast<uint64_t>(in[kStream].item<int64_t>()), in[kStep], in[kSample]},
          .queries = layer->window({in[0].size(0), in[0].size(1), in[0].size(2), in[1].size(2)})};
}

// The dropout layer on attention weights beside the site, if the plan has a row for one.
const model::Dropout* attention_dropout_near(const PlanContext& context, const model::Site& site) {
  const std::string home = home_of(site);
  for (const auto& module : context.model.modules(/*include_self=*/false)) {
    const auto* dropout = dynamic_cast<const model::Dropout*>(module.get());
    if (dropout == nullptr || !dropout->path().starts_with(home)) continue;
    const ParallelStyle* style = context.style_of(dropout->path());
    if (style != nullptr && std::holds_alternative<AttentionMask>(*style)) return dropout;
  }
  return nullptr;
}

TokenSplit input_split(const PlanContext& context) {
  return {context.plan.num_tokens, context.plan.input_axes, context.groups, context.plan.tokens_per_row};
}

FieldShard read_by(const PlanContext& context) { return field_shard(input_split(context), context.plan.tokens_per_row); }

// At a site with `extent` tokens, takes the `own` ones from `first` on.
void install_narrow(model::Site& site, int64_t first, int64_t own, int64_t extent) {
  site.install([first, own, extent](Tensors in, const Body& body) -> Tensors {
    const at::Tensor out = body(std::move(in)).at(0);
    WELKIN_CHECK(out.size(kTokenDim) == extent, "the plan knows the number of tokens");
    return {out.narrow(kTokenDim, first, own)};
  });
}

}  // namespace

void SplitTokens::install(PlanContext& context, model::Site& site) const {
  site.install([levels = context.inner_levels(), num_tokens = context.tokens.num_of(context.plan.input_axes.size())](
                   Tensors in, const Body& body) {
    Tensors out = body(std::move(in));
    WELKIN_CHECK(out.at(0).size(kTokenDim) == num_tokens, "the plan knows the number of tokens");
    for (const auto& level : levels) out = {split_to_group(level.group, out.at(0), kTokenDim, level.lengths)};
    return out;
  });
}

void SplitTokens::leave(PartialSums& sums) const {
  for (const Axis axis : axes) sums.tokens = sums.tokens | axis;
}

void GatherTokens::install(PlanContext& context, model::Site& site) const {
  site.install([levels = context.inner_levels()](Tensors in, const Body& body) {
    Tensors out = body(std::move(in));
    for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
      out = {gather_from_group(level->group, out.at(0), kTokenDim, level->lengths)};
    }
    return out;
  });
}

void ContextParallelAttention::install(PlanContext& context, model::Site& site) const {
  const TokenSplit::Level* level = context.tokens.level(axes);
  if (level == nullptr || level->group.size() == 1) return;
  site.install([level = *level, mode = mode, dropout = attention_dropout_near(context, site)](const Tensors& in,
                                                                                              const Body& body) -> Tensors {
    if (mode == ContextMode::AllGather) return all_gather_attention(level.group, level.lengths, in, body);
    const TokenBlocks* blocks = level.blocks ? &*level.blocks : nullptr;
    if (mode == ContextMode::AllToAll) return all_to_all_attention(level.group, level.lengths, in, body, blocks);
    return {ring_attention(level.group, level.lengths, in.at(0), in.at(1), in.at(2), ring_dropout(dropout, in))};
  });
}

void TokensToChannels::install(PlanContext& context, model::Site& site) const {
  const TokenSplit::Level* level = context.tokens.level(axes);
  if (level == nullptr || level->group.size() == 1) return;
  site.install([level = *level, parts = parts, dim = weight_dim](Tensors in, const Body& body) -> Tensors {
    const at::Tensor channels = channels_of_all_tokens(level, in.front(), parts);
    in.front() = level.blocks ? blocks_to_rows(*level.blocks, channels) : channels;
    for (size_t i = 1; i < in.size(); ++i) {
      const int64_t own = in[i].size(dim) / level.group.size();
      in[i] = in[i].narrow(dim, level.group.group_rank() * own, own);
    }
    const at::Tensor out = body(std::move(in)).at(0);
    return {tokens_of_all_channels(level, level.blocks ? rows_to_blocks(*level.blocks, out) : out)};
  });
}

void OwnFromRead::install(PlanContext& context, model::Site& site) const {
  const FieldShard shard = read_by(context);
  if (shard.num_tokens == shard.num_tokens_read()) return;
  install_narrow(site, shard.first_token, shard.num_tokens, shard.num_tokens_read());
}

void OwnFromAll::install(PlanContext& context, model::Site& site) const {
  const TokenSplit input = input_split(context);
  const TokenBlock* block = input.own_block();
  if (block == nullptr) return install_narrow(site, input.offset(), input.num_own(), context.plan.num_tokens);
  site.install([own = *block, columns = context.plan.tokens_per_row](Tensors in, const Body& body) -> Tensors {
    return {tokens_of_block(own, body(std::move(in)).at(0), columns)};
  });
}

void ReadFromOwn::install(PlanContext& context, model::Site& site) const {
  const FieldShard shard = read_by(context);
  if (shard.num_tokens == shard.num_tokens_read()) return;
  const int64_t before = shard.first_token, own = shard.num_tokens;
  site.install([before, own, after = shard.num_tokens_read() - before - own](Tensors in, const Body& body) -> Tensors {
    const at::Tensor out = body(std::move(in)).at(0);
    WELKIN_CHECK(out.size(kTokenDim) == own, "the plan knows the number of tokens");
    return {at::constant_pad_nd(out, {0, 0, before, after})};
  });
}

}  // namespace welkin::parallel
