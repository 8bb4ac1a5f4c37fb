// SPDX-License-Identifier: Apache-2.0
// Sums over the layers of model/swin/swin.cpp.
#include "model/swin/swin_cost.h"

#include <algorithm>
#include <string>

#include "ops/attention/attention_cost.h"
#include "ops/gemm/linear_cost.h"

namespace welkin::model {
namespace {

using config::CheckpointedPart;

LayerCost swin_linear(std::string name, int64_t tokens, int64_t in, int64_t out, bool with_bias, bool of_input = false) {
  return layer_cost(std::move(name), ops::linear_cost(tokens, in, out, kFloatBytes), in * out, with_bias ? out : 0, of_input);
}

LayerCost swin_norm(std::string name, int64_t tokens, int64_t width) {
  return {.name = std::move(name),
          .activation_bytes = 2 * kFloatBytes * static_cast<double>(tokens * width),
          .parameters = 2 * width};
}

int64_t bias_values(const SwinOptions& options) { return options.bias_rows() * options.window_bands() * options.num_heads; }

void add_swin_block(ModelCost& cost, const SwinOptions& options, const std::string& path) {
  const int64_t n = options.num_tokens(), d = options.embed_dim;
  cost.add(swin_norm(path + ".norm1", n, d));
  cost.add(swin_linear(path + ".attn.qkv", n, d, 3 * d, /*with_bias=*/true));
  LayerCost core = layer_cost(path + ".attn.core", ops::attention_cost(n, options.window_tokens(), d, kFloatBytes), 0, 0);
  core.parameters = bias_values(options);
  cost.add(core);
  cost.add(swin_linear(path + ".attn.proj", n, d, d, /*with_bias=*/true));
  cost.add(swin_norm(path + ".norm2", n, d));
  cost.add(swin_linear(path + ".mlp.fc1", n, d, options.mlp_width, /*with_bias=*/true));
  cost.add(swin_linear(path + ".mlp.fc2", n, options.mlp_width, d, /*with_bias=*/true));
}

double hidden_values(const SwinOptions& options) {
  return (options.dropout > 0 ? 2 : 1) * static_cast<double>(options.num_tokens() * options.mlp_width);
}

// q, k and v as windows, the scaled q, the attention weights, and the result.
double attention_values(const SwinOptions& options, bool is_mixed) {
  const auto values = static_cast<double>(options.num_tokens() * options.embed_dim);
  const auto weights = static_cast<double>(options.num_tokens() * options.window_tokens() * options.num_heads);
  return 5 * values + (is_mixed ? 3 : 1) * weights;
}

// Inputs of the norms, results of the norms for the matmuls, the values of attention, and hidden features.
SavedValues kept_of_swin_block(const SwinOptions& options, bool is_mixed) {
  const auto values = static_cast<double>(options.num_tokens() * options.embed_dim);
  return {.stream = 2 * values, .normed = 2 * values, .inner = attention_values(options, is_mixed) + hidden_values(options)};
}

SavedValues kept_of_checkpointed(const SwinOptions& options, CheckpointedPart part, bool is_mixed) {
  const auto values = static_cast<double>(options.num_tokens() * options.embed_dim);
  if (part == CheckpointedPart::Blocks) return {.stream = values};
  SavedValues kept = kept_of_swin_block(options, is_mixed);
  kept.stream += values;
  kept.normed -= values;
  kept.inner -= part == CheckpointedPart::Mlp ? hidden_values(options) : attention_values(options, is_mixed);
  return kept;
}

int64_t weights_of(const SwinOptions& options, CheckpointedPart part) {
  const int64_t attention = 4 * options.embed_dim * options.embed_dim, mlp = 2 * options.embed_dim * options.mlp_width;
  return part == CheckpointedPart::Blocks ? attention + mlp : part == CheckpointedPart::Mlp ? mlp : attention;
}

double flops_of_part(const ModelCost& cost, CheckpointedPart part) {
  const std::string path = part == CheckpointedPart::Blocks ? "blocks.0."
                           : part == CheckpointedPart::Mlp  ? "blocks.0.mlp."
                                                            : "blocks.0.attn.";
  double flops = 0;
  for (const LayerCost& layer : cost.layers) {
    if (layer.name.starts_with(path)) flops += layer.forward_flops;
  }
  return flops;
}

}  // namespace

ModelCost swin_cost(const SwinOptions& options) {
  const int64_t n = options.num_tokens(), d = options.embed_dim, points = options.patch * options.patch;
  ModelCost cost;
  cost.add(swin_linear("patch_embed", n, options.in_channels * points, d, /*with_bias=*/true, /*of_input=*/true));
  for (int64_t i = 0; i < options.depth; ++i) add_swin_block(cost, options, "blocks." + std::to_string(i));
  cost.add(swin_norm("norm", n, d));
  cost.add(swin_linear("head", n, d, options.out_channels * points, /*with_bias=*/false));
  return cost;
}

MemoryCost swin_memory_cost(const SwinOptions& options, const CheckpointedBlocks& checkpointed, bool is_mixed) {
  const int64_t n = options.num_tokens(), d = options.embed_dim, points = options.patch * options.patch;
  const int64_t split = 3 * d * d + 3 * d + d * d + 2 * d * options.mlp_width + options.mlp_width + bias_values(options);
  MemoryCost cost{.kept = {.ends = static_cast<double>(n * (options.in_channels * points + d + options.out_channels * points)),
                           .normed_end = static_cast<double>(n * d)},
                  .split_parameters = options.depth * split};
  const SavedValues block = kept_of_swin_block(options, is_mixed);
  int64_t num_checkpointed = 0;
  if (checkpointed.part == CheckpointedPart::Blocks || checkpointed.part == CheckpointedPart::Mlp ||
      checkpointed.part == CheckpointedPart::Attention) {
    num_checkpointed = checkpointed.blocks > 0 ? std::min(checkpointed.blocks, options.depth) : options.depth;
    const SavedValues less = kept_of_checkpointed(options, checkpointed.part, is_mixed);
    cost.kept = cost.kept + static_cast<double>(num_checkpointed) * less;
    cost.again = block + -1.0 * less;
    for (const auto member : kSavedMembers) cost.again.*member = std::max(0.0, cost.again.*member);
    cost.recomputed_weights = weights_of(options, checkpointed.part);
    cost.checkpointed_weights = num_checkpointed * cost.recomputed_weights;
    cost.recompute_flops = static_cast<double>(num_checkpointed) * flops_of_part(swin_cost(options), checkpointed.part);
  }
  cost.kept = cost.kept + static_cast<double>(options.depth - num_checkpointed) * block;
  return cost;
}

}  // namespace welkin::model
