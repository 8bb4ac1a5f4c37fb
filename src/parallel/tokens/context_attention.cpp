// SPDX-License-Identifier: Apache-2.0
#include "parallel/tokens/context_attention.h"

#include <ATen/ops/stack.h>

#include "core/error.h"
#include "parallel/comm/differentiable.h"

namespace welkin::parallel {
namespace {

constexpr int64_t kHeads = 1;  // dims of (B, H, N, D)
constexpr int64_t kTokens = 2;

}  // namespace

const char* context_mode_name(ContextMode mode) {
  switch (mode) {
    case ContextMode::AllGather:
      return "all_gather";
    case ContextMode::Ring:
      return "ring";
    default:
      return "all_to_all";
  }
}

model::Tensors all_gather_attention(const Group& group, const Lengths& lengths, const model::Tensors& qkv,
                                    const model::Body& body) {
  // Gathers both in one message.
  const at::Tensor kv = all_gather_autograd(group, at::stack({qkv.at(1), qkv.at(2)}), kTokens + 1, lengths);
  return body({qkv.at(0), kv.select(0, 0), kv.select(0, 1)});
}

model::Tensors all_to_all_attention(const Group& group, const Lengths& lengths, const model::Tensors& qkv,
                                    const model::Body& body, const TokenBlocks* blocks) {
  const int64_t heads = qkv.at(0).size(kHeads);
  WELKIN_CHECK(heads % group.size() == 0, "the heads of an all-to-all divide by the group");
  const Lengths heads_per_rank(static_cast<size_t>(group.size()), heads / group.size());
  const AllToAll to_heads{
      .split_dim = kHeads + 1, .split_lengths = heads_per_rank, .join_dim = kTokens + 1, .join_lengths = lengths};
  const bool has_masks = qkv.size() > 3;  // the model adds their key while dropout is active
  const TokenBlocks* moved_blocks = has_masks ? blocks : nullptr;
  at::Tensor moved = all_to_all_autograd(group, at::stack({qkv.at(0), qkv.at(1), qkv.at(2)}), to_heads);
  if (moved_blocks != nullptr) moved = blocks_to_rows(*moved_blocks, moved, kTokens + 1);
  at::Tensor mixed = body({moved.select(0, 0), moved.select(0, 1), moved.select(0, 2)}).at(0);
  if (moved_blocks != nullptr) mixed = rows_to_blocks(*moved_blocks, mixed, kTokens);
  return {all_to_all_autograd(
      group, mixed, {.split_dim = kTokens, .split_lengths = lengths, .join_dim = kHeads, .join_lengths = heads_per_rank})};
}

}  // namespace welkin::parallel
