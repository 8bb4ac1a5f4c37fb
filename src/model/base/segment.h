// SPDX-License-Identifier: Apache-2.0
// A model as a sequence: its forward pass is its segments, one after the other. Who runs some of them alone (a stage of a
// pipeline) needs nothing else of the model. A model says its segments and knows no stage.
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
  std::vector<std::string> layers;  // paths of the layers, and names of the parameters, that work here; in others too, if need be
  // From what the segment before has left (nothing for the first) to what the next one needs; the last leaves the output alone.
  // Tensors are (B, ...) and depend on no sample but their own. `input` is the model's, which any segment may look at.
  std::function<Tensors(Tensors, const at::Tensor& input, const ForwardContext& context)> run;
  bool reads_input = true;  // false: run() does not look at `input`, which may then be undefined

  bool holds(std::string_view parameter) const {
    return std::any_of(layers.begin(), layers.end(), [&](const std::string& layer) {
      return parameter.starts_with(layer) && (parameter.size() == layer.size() || parameter[layer.size()] == '.');
    });
  }
};

}  // namespace welkin::model
