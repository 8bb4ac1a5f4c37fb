// SPDX-License-Identifier: Apache-2.0
// Dropout and drop-path as layers without parameters, active in training mode only. The layer's path names its random stream.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "model/base/forward_context.h"
#include "model/base/layer.h"
#include "ops/random/philox_dropout.h"

namespace welkin::model {

// The key of a layer's mask in this forward pass.
ops::MaskKey mask_key(const Layer& layer, const ForwardContext& context);

class Dropout : public Layer {
 public:
  Dropout(std::string path, double rate) : Layer(std::move(path)), rate_(rate) {}

  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) const;
  bool active() const { return rate_ > 0.0 && is_training(); }
  double rate() const { return rate_; }
  void pretty_print(std::ostream& stream) const override;

  // Set by code that splits activations, so that masks equal those of the whole: from the local shape (B, ...) to its place.
  // Empty: the activation is whole.
  using WindowOf = std::function<ops::MaskWindow(at::IntArrayRef)>;
  WindowOf window_of;
  ops::MaskWindow window(at::IntArrayRef local_shape) const { return window_of ? window_of(local_shape) : ops::MaskWindow{}; }

 private:
  double rate_;
};

// Drops whole samples of a residual branch.
class DropPath : public Layer {
 public:
  DropPath(std::string path, double rate) : Layer(std::move(path)), rate_(rate) {}

  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) const;
  void pretty_print(std::ostream& stream) const override;

 private:
  double rate_;
};

}  // namespace welkin::model
