// SPDX-License-Identifier: Apache-2.0
// Sums over the layers of model/vit/vit.cpp.
#include "model/vit/vit_cost.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "ops/attention/attention_cost.h"
#include "ops/gemm/linear_cost.h"

namespace welkin::model {
namespace {

LayerCost vit_linear(std::string name, int64_t tokens, int64_t in, int64_t out, bool with_bias, bool of_input = false) {
  return layer_cost(std::move(name), ops::linear_cost(tokens, in, out, kFloatBytes), in * out, with_bias ? out : 0, of_input);
}

LayerCost vit_norm(std::string name, int64_t tokens, int64_t width) {
  return {.name = std::move(name),
          .activation_bytes = 2 * kFloatBytes * static_cast<double>(tokens * width),
          .parameters = 2 * width};
}

void add_block(ModelCost& cost, const VitOptions& options, const std::string& path) {
  const int64_t n = options.num_tokens();
  const int64_t d = options.embed_dim;
  cost.add(vit_norm(path + ".norm1", n, d));
  if (options.joint_qkv) {
    cost.add(vit_linear(path + ".attn.qkv", n, d, 3 * d, /*with_bias=*/true));
  } else {
    for (const char* name : {".attn.q", ".attn.k", ".attn.v"}) {
      LayerCost layer = vit_linear(path + name, n, d, d, /*with_bias=*/true);
      if (name != std::string_view(".attn.q")) layer.shared_bytes = kFloatBytes * static_cast<double>(n * d);
      cost.add(std::move(layer));
    }
  }
  cost.add(layer_cost(path + ".attn.core", ops::attention_cost(n, n, d, kFloatBytes), 0, 0));
  cost.add(vit_linear(path + ".attn.proj", n, d, d, /*with_bias=*/true));
  cost.add(vit_norm(path + ".norm2", n, d));
  cost.add(vit_linear(path + ".mlp.fc1", n, d, options.mlp_width, /*with_bias=*/true));
  cost.add(vit_linear(path + ".mlp.fc2", n, options.mlp_width, d, /*with_bias=*/true));
}

int64_t block_parameters(const VitOptions& options) {
  const int64_t d = options.embed_dim;
  const int64_t norms = 2 * 2 * d;
  const int64_t attention = 4 * (d * d + d);
  return norms + attention + 2 * d * options.mlp_width + options.mlp_width + d;
}

// Values that a block's backward pass needs: inputs of both norms; results of the norms for the matmuls; q, k, v, the attention
// result, and hidden features before GELU (and behind it, if dropout follows). Dropout keeps masks as keys, not
// as values.
SavedValues kept_of_block(const VitOptions& options) {
  const auto values = static_cast<double>(options.num_tokens() * options.embed_dim);
  const auto hidden = static_cast<double>(options.num_tokens() * options.mlp_width);
  return {.stream = 2 * values,
          .normed = 2 * values,
          .inner = 2 * values + (options.dropout > 0 ? 2 : 1) * hidden,
          .keys = 2 * values};
}

// Values of a block with one checkpointed part, which keeps only its input. A whole block's input is that of its first norm, in
// the stream anyway; the input of the other parts is a norm's result in float32.
SavedValues kept_of_checkpointed_block(const VitOptions& options, config::CheckpointedPart part) {
  const auto values = static_cast<double>(options.num_tokens() * options.embed_dim);
  if (part == config::CheckpointedPart::Blocks) return {.stream = values};
  SavedValues kept = kept_of_block(options);
  kept.stream += values;
  kept.normed -= values;
  if (part == config::CheckpointedPart::Mlp) {
    kept.inner = 2 * values;
  } else {
    kept.inner -= 2 * values;
    kept.keys = 0;
  }
  return kept;
}

// Values that recomputing a part brings back, besides its input.
SavedValues difference(const SavedValues& whole, const SavedValues& checkpointed) {
  SavedValues more = whole + -1.0 * checkpointed;
  for (const auto member : kSavedMembers) more.*member = std::max(0.0, more.*member);
  return more;
}

int64_t matmul_weights_of(const VitOptions& options, config::CheckpointedPart part) {
  const int64_t attention = 4 * options.embed_dim * options.embed_dim, mlp = 2 * options.embed_dim * options.mlp_width;
  return part == config::CheckpointedPart::Blocks ? attention + mlp : part == config::CheckpointedPart::Mlp ? mlp : attention;
}

double forward_flops_of(const ModelCost& cost, const std::string& site) {
  double flops = 0;
  for (const LayerCost& layer : cost.layers) {
    if (layer.name.starts_with(site + ".")) flops += layer.forward_flops;
  }
  return flops;
}

}  // namespace

ModelCost vit_cost(const VitOptions& options) {
  const int64_t n = options.num_tokens();
  const int64_t d = options.embed_dim;
  const int64_t patch_inputs = options.in_channels * options.patch * options.patch;
  const int64_t patch_outputs = options.out_channels * options.patch * options.patch;
  ModelCost cost;
  cost.parameters = n * d;  // pos_embed, which belongs to no layer
  cost.add(vit_linear("patch_embed", n, patch_inputs, d, /*with_bias=*/true, /*of_input=*/true));
  for (int64_t i = 0; i < options.depth; ++i) add_block(cost, options, "blocks." + std::to_string(i));
  cost.add(vit_norm("norm", n, d));
  cost.add(vit_linear("head", n, d, patch_outputs, /*with_bias=*/false));
  return cost;
}

// Norms, and the biases behind the two all-reduces over tp, are not split.
MemoryCost vit_memory_cost(const VitOptions& options, const CheckpointedBlocks& checkpointed) {
  const auto tokens = static_cast<double>(options.num_tokens());
  const auto d = static_cast<double>(options.embed_dim);
  const auto outputs = static_cast<double>(options.out_channels * options.patch * options.patch);
  const auto patches = static_cast<double>(options.in_channels * options.patch * options.patch);
  const int64_t whole_per_block = (2 * 2 + 2) * options.embed_dim;
  const SavedValues block = kept_of_block(options);
  MemoryCost cost{.kept = {.ends = tokens * (patches + d + outputs),  // the last norm's input; the loss keeps the prediction
                           .normed_end = tokens * d},
                  .split_parameters = options.depth * (block_parameters(options) - whole_per_block)};
  int64_t num_checkpointed = 0;
  using config::CheckpointedPart;
  if (checkpointed.part != CheckpointedPart::None && checkpointed.part != CheckpointedPart::Pattern &&
      checkpointed.part != CheckpointedPart::Budget) {
    num_checkpointed = checkpointed.blocks > 0 ? std::min(checkpointed.blocks, options.depth) : options.depth;
    const SavedValues less = kept_of_checkpointed_block(options, checkpointed.part);
    cost.kept = cost.kept + static_cast<double>(num_checkpointed) * less;
    cost.again = difference(block, less);
    cost.recomputed_weights = matmul_weights_of(options, checkpointed.part);
    cost.checkpointed_weights = num_checkpointed * cost.recomputed_weights;
    const std::string inside = checkpointed.part == config::CheckpointedPart::Blocks ? ""
                               : checkpointed.part == config::CheckpointedPart::Mlp  ? ".mlp"
                                                                                     : ".attn";
    cost.recompute_flops = static_cast<double>(num_checkpointed) * forward_flops_of(vit_cost(options), "blocks.0" + inside);
  }
  cost.kept = cost.kept + static_cast<double>(options.depth - num_checkpointed) * block;
  return cost;
}

}  // namespace welkin::model
