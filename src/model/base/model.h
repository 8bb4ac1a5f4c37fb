// SPDX-License-Identifier: Apache-2.0
// The base of every model: a torch module with named sites, counter-based initial weights and dropout, and no knowledge of ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "model/base/forward_context.h"
#include "model/base/layer.h"
#include "model/base/segment.h"
#include "model/base/site.h"

namespace welkin::model {

class Model : public Layer {
 public:
  Model() : Layer("") {}

  // input (B, C, spatial...), output (B, C', spatial...), dtype by autocast.
  virtual at::Tensor forward(const at::Tensor& input, const ForwardContext& context) = 0;

  // The parts of forward(), cut where a pipeline may cut it. Every parameter belongs to each segment that uses it.
  // Empty: the model cannot be cut.
  virtual std::vector<Segment> segments() { return {}; }
};

using ModelPtr = std::shared_ptr<Model>;

}  // namespace welkin::model
