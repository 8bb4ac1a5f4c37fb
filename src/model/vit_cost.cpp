// SPDX-License-Identifier: Apache-2.0
// Sums over the layers of model/vit.cpp.
#include "model/vit_cost.h"

#include <string>

#include "ops/attention_cost.h"
#include "ops/linear_cost.h"

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
    for (const char* name : {".attn.q", ".attn.k", ".attn.v"}) cost.add(vit_linear(path + name, n, d, d, /*with_bias=*/true));
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

}  // namespace

ModelCost vit_cost(const VitOptions& options) {
  const int64_t n = options.num_tokens();
  const int64_t d = options.embed_dim;
  const int64_t patch_inputs = options.in_channels * options.patch * options.patch;
  const int64_t patch_outputs = options.out_channels * options.patch * options.patch;
  ModelCost cost;
  cost.parameters = n * d;  // pos_embed, which is no layer
  cost.add(vit_linear("patch_embed", n, patch_inputs, d, /*with_bias=*/true, /*of_input=*/true));
  for (int64_t i = 0; i < options.depth; ++i) add_block(cost, options, "blocks." + std::to_string(i));
  cost.add(vit_norm("norm", n, d));
  cost.add(vit_linear("head", n, d, patch_outputs, /*with_bias=*/false));
  return cost;
}

// What the backward pass of a block asks for: the inputs of its two norms; what the norms give to the products; q, k, v, the
// result of attention, and the hidden features before GELU (and behind it, where dropout follows). Dropout keeps masks as keys,
// not as values. Norms and the biases behind the two reductions over tp are not divided.
MemoryCost vit_memory_cost(const VitOptions& options) {
  const auto tokens = static_cast<double>(options.num_tokens());
  const auto d = static_cast<double>(options.embed_dim);
  const auto hidden = static_cast<double>(options.mlp_width);
  const auto outputs = static_cast<double>(options.out_channels * options.patch * options.patch);
  const auto patches = static_cast<double>(options.in_channels * options.patch * options.patch);
  const double block_tokens = static_cast<double>(options.depth) * tokens;
  const int64_t whole_per_block = (2 * 2 + 2) * options.embed_dim;
  return {.kept = {.ends = tokens * (patches + d + outputs),  // the last norm's input; the loss keeps the prediction
                   .stream = block_tokens * 2 * d,
                   .normed = block_tokens * 2 * d,
                   .normed_end = tokens * d,
                   .inner = block_tokens * (2 * d + (options.dropout > 0 ? 2 : 1) * hidden),
                   .keys = block_tokens * 2 * d},
          .split_parameters = options.depth * (block_parameters(options) - whole_per_block)};
}

}  // namespace welkin::model
