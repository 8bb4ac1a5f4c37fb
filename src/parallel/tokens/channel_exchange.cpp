// SPDX-License-Identifier: Apache-2.0
#include "parallel/tokens/channel_exchange.h"

#include "core/error.h"
#include "parallel/comm/differentiable.h"

namespace welkin::parallel {
namespace {

constexpr int64_t kAllTokensDim = 1;     // dim of (B, N, ...)
constexpr int64_t kChannelsInParts = 3;  // of the channels in (B, N, parts, C)
constexpr int64_t kChannelsDim = 2;

Lengths equal_lengths(const Group& group, int64_t extent) { return Lengths(static_cast<size_t>(group.size()), extent); }

}  // namespace

at::Tensor channels_of_all_tokens(const TokenSplit::Level& level, const at::Tensor& x_BNF, int64_t parts) {
  const at::Tensor x_BNPC = x_BNF.unflatten(-1, {parts, -1});
  const int64_t channels = x_BNPC.size(kChannelsInParts), ranks = level.group.size();
  WELKIN_CHECK(channels % ranks == 0, "the channels of an all-to-all divide by the group");
  const AllToAll layout{.split_dim = kChannelsInParts,
                        .split_lengths = equal_lengths(level.group, channels / ranks),
                        .join_dim = kAllTokensDim,
                        .join_lengths = level.lengths};
  return all_to_all_autograd(level.group, x_BNPC, layout).flatten(2);
}

at::Tensor tokens_of_all_channels(const TokenSplit::Level& level, const at::Tensor& x_BNC) {
  const AllToAll layout{.split_dim = kAllTokensDim,
                        .split_lengths = level.lengths,
                        .join_dim = kChannelsDim,
                        .join_lengths = equal_lengths(level.group, x_BNC.size(kChannelsDim))};
  return all_to_all_autograd(level.group, x_BNC, layout);
}

}  // namespace welkin::parallel
