// SPDX-License-Identifier: Apache-2.0
// Sums over the layers of model/sfno/sfno.cpp.
#include "model/sfno/sfno_cost.h"

#include <algorithm>
#include <string>

#include "ops/gemm/linear_cost.h"
#include "ops/sht/sht_cost.h"

namespace welkin::model {
namespace {

// Points of a block's input grid and of its output grid.
struct BlockGrids {
  int64_t from_rows, from, to_rows, to;
};

BlockGrids grids_of(const SfnoOptions& options, int64_t block) {
  const int64_t outer = options.height * options.width, inner = options.inner_height() * options.inner_width();
  const bool is_first = block == 0, is_last = block + 1 == options.depth;
  return {.from_rows = is_first ? options.height : options.inner_height(),
          .from = is_first ? outer : inner,
          .to_rows = is_last ? options.height : options.inner_height(),
          .to = is_last ? outer : inner};
}

bool changes_grid(const SfnoOptions& options, int64_t block) {
  return options.depth > 1 && (block == 0 || block + 1 == options.depth);
}

LayerCost point_cost(std::string name, int64_t points, int64_t in, int64_t out, bool with_bias, bool of_input = false) {
  return layer_cost(std::move(name), ops::linear_cost(points, in, out, kFloatBytes), in * out, with_bias ? out : 0, of_input);
}

LayerCost point_norm(std::string name, int64_t points, int64_t width) {
  return {.name = std::move(name),
          .activation_bytes = 2 * kFloatBytes * static_cast<double>(points * width),
          .parameters = 2 * width};
}

int64_t spectral_weights(const SfnoOptions& options) { return 2 * options.embed_dim * options.embed_dim * options.degrees(); }

ops::OperatorCost transform_cost(const SfnoOptions& options, int64_t rows) {
  return ops::sht_cost(options.embed_dim, rows, options.degrees(), options.orders(), kFloatBytes);
}

void add_sfno_block(ModelCost& cost, const SfnoOptions& options, int64_t block) {
  const std::string path = "blocks." + std::to_string(block);
  const BlockGrids grids = grids_of(options, block);
  const int64_t d = options.embed_dim;
  // A transform has no weights: its backward pass has the same size.
  ops::OperatorCost outside = transform_cost(options, grids.from_rows);
  if (changes_grid(options, block)) outside += transform_cost(options, grids.to_rows);  // for the residual
  LayerCost filter = layer_cost(path + ".filter.analysis", outside, 0, 0);
  const auto coefficients = static_cast<double>(2 * d * options.degrees() * options.orders());
  filter.train_flops = 2 * outside.flops;
  filter.inputs = static_cast<double>(grids.from * d);
  filter.results = coefficients;
  cost.add(filter);
  const ops::OperatorCost back = transform_cost(options, grids.to_rows);
  const auto degrees = static_cast<double>(options.degrees());
  LayerCost mixing =
      layer_cost(path + ".filter.filter", degrees * ops::linear_cost(options.orders(), 2 * d, 2 * d, kFloatBytes) + back,
                 spectral_weights(options), 0);
  mixing.train_flops -= back.flops;
  mixing.inputs = coefficients;
  mixing.results = static_cast<double>(grids.to * d);
  cost.add(mixing);
  cost.add(point_norm(path + ".norm0", grids.to, d));
  cost.add(point_cost(path + ".mlp.fwd.0", grids.to, d, options.mlp_width, /*with_bias=*/true));
  cost.add(point_cost(path + ".mlp.fwd.2", grids.to, options.mlp_width, d, /*with_bias=*/true));
  cost.add(point_norm(path + ".norm1", grids.to, d));
  cost.add(point_cost(path + ".outer_skip", grids.to, d, d, /*with_bias=*/false));
}

// Input of the Fourier transform; coefficients before mixing; inputs of the first norm, of GELU and of the MLP; hidden
// features; input of the second norm, and the residual.
SavedValues kept_of_sfno_block(const SfnoOptions& options, int64_t block) {
  const BlockGrids grids = grids_of(options, block);
  const auto values = static_cast<double>(grids.to * options.embed_dim);
  const auto coefficients = static_cast<double>(2 * options.embed_dim * options.degrees() * options.orders());
  return {.stream = static_cast<double>(grids.from * options.embed_dim) + coefficients + 3 * values,
          .shared = 2 * values,
          .inner = static_cast<double>(grids.to * options.mlp_width)};
}

SavedValues kept_of_checkpointed(const SfnoOptions& options, int64_t block, config::CheckpointedPart part) {
  const BlockGrids grids = grids_of(options, block);
  if (part == config::CheckpointedPart::Blocks) return {.stream = static_cast<double>(grids.from * options.embed_dim)};
  SavedValues kept = kept_of_sfno_block(options, block);
  kept.stream += static_cast<double>(grids.to * options.embed_dim);
  kept.shared -= static_cast<double>(grids.to * options.embed_dim);
  kept.inner = 0;
  return kept;
}

double flops_of_part(const ModelCost& cost, int64_t block, config::CheckpointedPart part) {
  const std::string path = "blocks." + std::to_string(block) + (part == config::CheckpointedPart::Blocks ? "." : ".mlp.");
  double flops = 0;
  for (const LayerCost& layer : cost.layers) {
    if (layer.name.starts_with(path)) flops += layer.forward_flops;
  }
  return flops;
}

SavedValues larger(SavedValues a, const SavedValues& b) {
  for (const auto member : kSavedMembers) a.*member = std::max(a.*member, b.*member);
  return a;
}

int64_t table_values(const SfnoOptions& options) {
  const int64_t rows = options.height + (options.depth > 1 ? options.inner_height() : 0);
  return options.degrees() * options.orders() * rows;
}

}  // namespace

ModelCost sfno_cost(const SfnoOptions& options) {
  const int64_t points = options.height * options.width, d = options.embed_dim;
  ModelCost cost;
  cost.add(point_cost("encoder.fwd.0", points, options.in_channels, d, /*with_bias=*/true, /*of_input=*/true));
  cost.add(point_cost("encoder.fwd.2", points, d, d, /*with_bias=*/false));
  for (int64_t i = 0; i < options.depth; ++i) add_sfno_block(cost, options, i);
  cost.add(point_cost("decoder.fwd.0", points, d, d, /*with_bias=*/true));
  cost.add(point_cost("decoder.fwd.2", points, d, options.out_channels, /*with_bias=*/false));
  cost.add(point_cost("residual_transform", points, options.in_channels, options.out_channels, /*with_bias=*/false,
                      /*of_input=*/true));
  return cost;
}

MemoryCost sfno_memory_cost(const SfnoOptions& options, const CheckpointedBlocks& checkpointed) {
  const int64_t points = options.height * options.width, d = options.embed_dim;
  const int64_t mlp = 2 * d * options.mlp_width;
  MemoryCost cost{.kept = {.ends = static_cast<double>(points * (2 * options.in_channels + 3 * d + options.out_channels))},
                  .split_parameters = options.depth * (spectral_weights(options) + mlp + options.mlp_width),
                  .constants = table_values(options)};
  using config::CheckpointedPart;
  const bool is_checkpointed = checkpointed.part == CheckpointedPart::Blocks || checkpointed.part == CheckpointedPart::Mlp;
  const int64_t most = checkpointed.blocks > 0 ? std::min(checkpointed.blocks, options.depth) : options.depth;
  const ModelCost flops = sfno_cost(options);
  for (int64_t i = 0; i < options.depth; ++i) {
    const SavedValues block = kept_of_sfno_block(options, i);
    if (!is_checkpointed || i >= most) {
      cost.kept = cost.kept + block;
      continue;
    }
    const SavedValues less = kept_of_checkpointed(options, i, checkpointed.part);
    cost.kept = cost.kept + less;
    cost.again = larger(cost.again, block + -1.0 * less);
    cost.recompute_flops += flops_of_part(flops, i, checkpointed.part);
    cost.recomputed_weights = mlp;
    cost.checkpointed_weights += mlp;
  }
  return cost;
}

}  // namespace welkin::model
