// SPDX-License-Identifier: Apache-2.0
// The base of layers that compute each point from nearby ones: convolutions and pooling. Such a layer also works on a block of
// a sample, if parallel/spatial brings the points around the block.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>

#include "model/base/layer.h"
#include "ops/convolution/convolution_grid.h"
#include "ops/convolution/piece_kernel.h"

namespace welkin::model {

// Geometry of the kernel along the axes d, h, w; a field has one point along d.
struct LocalRule {
  ops::BoxShape kernel{1, 1, 1}, stride{1, 1, 1}, padding{0, 0, 0};
  bool is_transposed = false;
  std::array<bool, 3> periodic{false, false, false};  // true: the axis wraps around; false: zeros beyond its ends
};

class LocalLayer : public Layer {
 public:
  using Layer::Layer;

  virtual LocalRule rule() const = 0;
  virtual Tensors weights() const { return {}; }             // this rank's tensors behind the result, besides the input
  virtual int64_t num_channels(const Tensors& x) const = 0;  // of the result

  // Set by code that cuts samples into blocks (B, C, D, H, W), which applies the layer's kernel to pieces of them. An axis
  // without padding does not wrap around: the piece contains the points beyond its ends. Empty: samples are whole.
  std::function<at::Tensor(const Tensors& x_BCDHW, const ops::PieceKernel& kernel)> on_blocks;
};

}  // namespace welkin::model
