// SPDX-License-Identifier: Apache-2.0
// Cost of one sample; torch-free. 2 FLOPs per multiply-add, matmuls only (norms and pointwise work excluded), no
// recomputation.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ops/base/operator_cost.h"

namespace welkin::model {

inline constexpr double kFloatBytes = 4;  // of an activation in the byte counts

// One layer, under the name of its site.
struct LayerCost {
  std::string name;             // "blocks.3.attn.q"
  double forward_flops = 0;     // per sample
  double train_flops = 0;       // forward and backward; without the gradient of the model's input
  double activation_bytes = 0;  // per sample, forward: inputs read and outputs written once, in float32
  int64_t parameters = 0;       // read once for a whole batch
  int64_t weights = 0;          // part of `parameters`: those of its matmul or convolution
  double shared_bytes = 0;      // part of activation_bytes: an input tensor that the previous layer reads, too
  double inputs = 0;            // values of its input per sample, and of its result
  double results = 0;

  // Bytes of a batch's forward pass.
  double bytes(int64_t batch) const {
    return activation_bytes * static_cast<double>(batch) + kFloatBytes * static_cast<double>(parameters);
  }
};

struct ModelCost {
  double forward_flops = 0;         // per sample
  double train_flops = 0;           // forward and backward, without the gradient of the model's input
  int64_t parameters = 0;           // those of the layers, and those of no layer
  std::vector<LayerCost> layers{};  // in the order of the forward pass; empty if the model does not provide them

  void add(LayerCost layer) {
    forward_flops += layer.forward_flops;
    train_flops += layer.train_flops;
    parameters += layer.parameters;
    layers.push_back(std::move(layer));
  }
  // Bytes of a batch's forward pass.
  double bytes(int64_t batch) const {
    double sum = 0;
    for (const LayerCost& layer : layers) sum += layer.bytes(batch);
    return sum;
  }
};

// Makes a layer from its operator's cost, whose bytes include `weights`. `of_input`: the input needs no gradient.
inline LayerCost layer_cost(std::string name, const ops::OperatorCost& cost, int64_t weights, int64_t biases,
                            bool of_input = false) {
  return {.name = std::move(name),
          .forward_flops = cost.flops,
          .train_flops = (of_input ? 2 : 3) * cost.flops,
          .activation_bytes = cost.bytes - kFloatBytes * static_cast<double>(weights),
          .parameters = weights + biases,
          .weights = weights,
          .inputs = cost.bytes / kFloatBytes - static_cast<double>(weights) - cost.results,
          .results = cost.results};
}

}  // namespace welkin::model
