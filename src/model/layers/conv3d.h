// SPDX-License-Identifier: Apache-2.0
// Convolution and transposed convolution of boxes as the U-Net uses them: kernel 4, stride 2, padding 1, with bias. One halves,
// the other doubles every edge. A leaky ReLU may follow in the same pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "model/base/layer.h"
#include "ops/convolution/convolution.h"

namespace welkin::model {

struct ConvInit {
  double deviation = 0.02;           // of the weight, N(0, deviation^2)
  std::optional<double> bias = 0.0;  // constant; without a value PyTorch's default, uniform in +-1/sqrt(fan_in)
};

class StridedConv3d : public Layer {
 public:
  StridedConv3d(std::string path, int64_t in_channels, int64_t out_channels, const ConvInit& initial);
  // x: one tensor, or two whose channels stand side by side.
  at::Tensor forward(at::TensorList x_BCDHW, const ops::LeakyRelu& leaky_relu = {}) const;
  void initialise(uint64_t seed) override;
  void pretty_print(std::ostream& stream) const override;

  at::Tensor weight;  // (out, in, 4, 4, 4)
  at::Tensor bias;    // (out)

 private:
  ConvInit initial_;
};

class TransposedConv3d : public Layer {
 public:
  TransposedConv3d(std::string path, int64_t in_channels, int64_t out_channels, const ConvInit& initial);
  // x: one tensor, or two whose channels stand side by side.
  at::Tensor forward(at::TensorList x_BCDHW, const ops::LeakyRelu& leaky_relu = {}) const;
  void initialise(uint64_t seed) override;
  void pretty_print(std::ostream& stream) const override;

  at::Tensor weight;  // (in, out, 4, 4, 4)
  at::Tensor bias;    // (out)

 private:
  ConvInit initial_;
};

}  // namespace welkin::model
