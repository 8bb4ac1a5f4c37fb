// SPDX-License-Identifier: Apache-2.0
// The base of layers that make each point from those nearby: convolutions and pooling. Such a layer works on a block of a sample
// too, where somebody brings it the points around the block (parallel/spatial).
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>

#include "model/base/layer.h"
#include "ops/convolution/convolution.h"

namespace welkin::model {

// Where the kernel stands along the axes d, h, w; a field has one point along d.
struct LocalRule {
  ops::BoxShape kernel{1, 1, 1}, stride{1, 1, 1}, padding{0, 0, 0};
  bool is_transposed = false;
  std::array<bool, 3> periodic{false, false, false};  // beyond its end an axis begins anew; else zeros are there
};

class LocalLayer : public Layer {
 public:
  using Layer::Layer;

  virtual LocalRule rule() const = 0;
  virtual Tensors weights() const { return {}; }             // of this rank, what the result depends on besides its input
  virtual int64_t num_channels(const Tensors& x) const = 0;  // of the result

  // Makes the layer's result, before any activation, of blocks (B, C, D, H, W), which stand with this padding in what it pads.
  // An axis without padding is not gone around: the points beyond are in the block.
  using Place = std::function<at::Tensor(const Tensors& x_BCDHW, const ops::BoxShape& padding)>;
  // Set by who cuts samples into blocks. Empty: they are whole.
  std::function<at::Tensor(const Tensors& x_BCDHW, const Place& place)> on_blocks;
};

}  // namespace welkin::model
