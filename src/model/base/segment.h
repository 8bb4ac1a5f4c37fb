// SPDX-License-Identifier: Apache-2.0
// A model as a sequence: its forward pass runs its segments one after the other. A pipeline stage, which runs some of them,
// needs nothing else of the model. The model provides its segments and knows no stages.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/forward_context.h"
#include "model/base/site.h"

namespace welkin::model {

struct Segment {
  std::string name;                 // "blocks.3"
  std::vector<std::string> layers;  // paths of the layers, and names of the parameters, used here (and perhaps in others)
  // Takes the result of the segment before (empty for the first) and returns the next one's input; the last returns the output.
  // Tensors are (B, ...), and each sample's values depend on it alone. `input` is the model's, for any segment to read.
  std::function<Tensors(Tensors, const at::Tensor& input, const ForwardContext& context)> run;
  bool reads_input = true;  // false: run() does not read `input`, which may then be undefined

  bool holds(std::string_view parameter) const {
    return std::any_of(layers.begin(), layers.end(), [&](const std::string& layer) {
      return parameter.starts_with(layer) && (parameter.size() == layer.size() || parameter[layer.size()] == '.');
    });
  }
};

}  // namespace welkin::model
