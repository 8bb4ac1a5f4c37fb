// SPDX-License-Identifier: Apache-2.0
// Sums over the layers of model/afno/afno.cpp.
#include "model/afno/afno_cost.h"

#include <algorithm>
#include <string>

#include "ops/gemm/linear_cost.h"

namespace welkin::model {
namespace {

LayerCost afno_linear(std::string name, int64_t tokens, int64_t in, int64_t out, bool with_bias, bool of_input = false) {
  return layer_cost(std::move(name), ops::linear_cost(tokens, in, out, kFloatBytes), in * out, with_bias ? out : 0, of_input);
}

LayerCost afno_norm(std::string name, int64_t tokens, int64_t width) {
  return {.name = std::move(name),
          .activation_bytes = 2 * kFloatBytes * static_cast<double>(tokens * width),
          .parameters = 2 * width};
}

int64_t wavenumbers(const AfnoOptions& options) { return options.rows() * options.kept_columns(); }

int64_t filter_parameters(const AfnoOptions& options) {
  const int64_t channels = options.embed_dim / options.num_blocks;
  return 2 * 2 * options.embed_dim * (channels + 1);
}

// Two complex products, each of four real products, in every block of channels.
LayerCost filter_cost(std::string name, const AfnoOptions& options) {
  const int64_t channels = options.embed_dim / options.num_blocks;
  const ops::OperatorCost product = ops::linear_cost(wavenumbers(options), 2 * channels, 2 * channels, kFloatBytes);
  LayerCost filter = layer_cost(std::move(name), static_cast<double>(2 * options.num_blocks) * product,
                                2 * 2 * options.embed_dim * channels, 2 * 2 * options.embed_dim);
  filter.inputs = filter.results = static_cast<double>(options.num_tokens() * options.embed_dim);
  return filter;
}

void add_afno_block(ModelCost& cost, const AfnoOptions& options, const std::string& path) {
  const int64_t n = options.num_tokens(), d = options.embed_dim;
  cost.add(afno_norm(path + ".norm1", n, d));
  cost.add(filter_cost(path + ".filter", options));
  cost.add(afno_norm(path + ".norm2", n, d));
  cost.add(afno_linear(path + ".mlp.fc1", n, d, options.mlp_width, /*with_bias=*/true));
  cost.add(afno_linear(path + ".mlp.fc2", n, options.mlp_width, d, /*with_bias=*/true));
}

// Inputs of the norms; inputs of both products and of the shrinkage (the Fourier transform keeps its own input); and hidden
// features.
SavedValues kept_of_afno_block(const AfnoOptions& options, bool is_mixed) {
  const auto values = static_cast<double>(options.num_tokens() * options.embed_dim);
  const auto hidden = static_cast<double>(options.num_tokens() * options.mlp_width);
  const auto spectrum = static_cast<double>(2 * wavenumbers(options) * options.embed_dim);
  return {.stream = 3 * values,
          .normed = values,
          .inner = (is_mixed ? 2 : 1) * 3 * spectrum + (options.dropout > 0 ? 2 : 1) * hidden};
}

// Only the block's input, or that of its MLP, the result of a norm in float32.
SavedValues kept_of_checkpointed(const AfnoOptions& options, config::CheckpointedPart part, bool is_mixed) {
  const auto values = static_cast<double>(options.num_tokens() * options.embed_dim);
  if (part == config::CheckpointedPart::Blocks) return {.stream = values};
  SavedValues kept = kept_of_afno_block(options, is_mixed);
  kept.stream += values;
  kept.normed = 0;
  kept.inner -= (options.dropout > 0 ? 2 : 1) * static_cast<double>(options.num_tokens() * options.mlp_width);
  return kept;
}

double flops_of_part(const AfnoOptions& options, config::CheckpointedPart part) {
  double flops = 0;
  for (const LayerCost& layer : afno_cost(options).layers) {
    const bool is_inside = layer.name.starts_with(part == config::CheckpointedPart::Blocks ? "blocks.0." : "blocks.0.mlp.");
    if (is_inside) flops += layer.forward_flops;
  }
  return flops;
}

}  // namespace

ModelCost afno_cost(const AfnoOptions& options) {
  const int64_t n = options.num_tokens(), d = options.embed_dim, points = options.patch * options.patch;
  ModelCost cost;
  cost.parameters = n * d;  // pos_embed, which belongs to no layer
  cost.add(afno_linear("patch_embed", n, options.in_channels * points, d, /*with_bias=*/true, /*of_input=*/true));
  for (int64_t i = 0; i < options.depth; ++i) add_afno_block(cost, options, "blocks." + std::to_string(i));
  cost.add(afno_linear("head", n, d, options.out_channels * points, /*with_bias=*/false));
  return cost;
}

MemoryCost afno_memory_cost(const AfnoOptions& options, const CheckpointedBlocks& checkpointed, bool is_mixed) {
  const int64_t n = options.num_tokens(), d = options.embed_dim, points = options.patch * options.patch;
  const int64_t mlp = 2 * d * options.mlp_width;
  const SavedValues block = kept_of_afno_block(options, is_mixed);
  MemoryCost cost{.kept = {.ends = static_cast<double>(n * (options.in_channels * points + d + options.out_channels * points))},
                  .split_parameters = options.depth * (filter_parameters(options) + mlp + options.mlp_width)};
  using config::CheckpointedPart;
  int64_t num_checkpointed = 0;
  if (checkpointed.part == CheckpointedPart::Blocks || checkpointed.part == CheckpointedPart::Mlp) {
    num_checkpointed = checkpointed.blocks > 0 ? std::min(checkpointed.blocks, options.depth) : options.depth;
    const SavedValues less = kept_of_checkpointed(options, checkpointed.part, is_mixed);
    cost.kept = cost.kept + static_cast<double>(num_checkpointed) * less;
    cost.again = block + -1.0 * less;
    for (const auto member : kSavedMembers) cost.again.*member = std::max(0.0, cost.again.*member);
    cost.recomputed_weights = mlp;
    cost.checkpointed_weights = num_checkpointed * mlp;
    cost.recompute_flops = static_cast<double>(num_checkpointed) * flops_of_part(options, checkpointed.part);
  }
  cost.kept = cost.kept + static_cast<double>(options.depth - num_checkpointed) * block;
  return cost;
}

}  // namespace welkin::model
