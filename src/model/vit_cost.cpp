// SPDX-License-Identifier: Apache-2.0
// Sums over the layers of model/vit.cpp.
#include "model/vit_cost.h"

#include "ops/attention_cost.h"
#include "ops/linear_cost.h"

namespace welkin::model {
namespace {

ops::OperatorCost block_cost(const VitOptions& options) {
  const int64_t n = options.num_tokens();
  const int64_t d = options.embed_dim;
  const ops::OperatorCost projections = 4 * ops::linear_cost(n, d, d, kFloatBytes);  // q, k, v, proj
  const ops::OperatorCost mlp =
      ops::linear_cost(n, d, options.mlp_width, kFloatBytes) + ops::linear_cost(n, options.mlp_width, d, kFloatBytes);
  return projections + mlp + ops::attention_cost(n, n, d, kFloatBytes);
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
  const double embed = ops::linear_cost(n, patch_inputs, d, kFloatBytes).flops;
  const double head = ops::linear_cost(n, d, patch_outputs, kFloatBytes).flops;
  ModelCost cost;
  cost.forward_flops = embed + static_cast<double>(options.depth) * block_cost(options).flops + head;
  cost.train_flops = 3 * cost.forward_flops - embed;
  cost.parameters = n * d + (patch_inputs + 1) * d + options.depth * block_parameters(options) + 2 * d + d * patch_outputs;
  return cost;
}

// What the backward pass of a block asks for: the inputs of its two norms; what the norms give to the products; q, k, v, the
// result of attention, and the hidden features before and behind GELU. Dropout keeps masks as keys, not as values. Norms and the
// biases behind the two reductions over tp are not divided.
MemoryCost vit_memory_cost(const VitOptions& options) {
  const auto tokens = static_cast<double>(options.num_tokens());
  const auto d = static_cast<double>(options.embed_dim);
  const auto hidden = static_cast<double>(options.mlp_width);
  const auto outputs = static_cast<double>(options.out_channels * options.patch * options.patch);
  const double block_tokens = static_cast<double>(options.depth) * tokens;
  const int64_t whole_per_block = (2 * 2 + 2) * options.embed_dim;
  return {.kept = {.ends = tokens * (2 * d + outputs),  // last norm's input and result, and the prediction, which the loss keeps
                   .stream = block_tokens * 2 * d,
                   .shared = block_tokens * 2 * d,
                   .inner = block_tokens * (2 * d + 2 * hidden),
                   .keys = block_tokens * 2 * d},
          .split_parameters = options.depth * (block_parameters(options) - whole_per_block)};
}

}  // namespace welkin::model
