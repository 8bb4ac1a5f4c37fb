// SPDX-License-Identifier: Apache-2.0
// Convolution and transposed convolution of boxes as in the U-Net: kernel 4, stride 2, padding 1, with bias. One halves
// every edge, the other doubles it. A leaky ReLU may follow in the same pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <utility>

#include "model/layers/local_layer.h"
#include "ops/convolution/convolution.h"

namespace welkin::model {

struct ConvInit {
  double deviation = 0.02;           // of the weight, N(0, deviation^2)
  std::optional<double> bias = 0.0;  // constant; without a value PyTorch's default, uniform in +-1/sqrt(fan_in)
};

class BoxConvolution : public LocalLayer {
 public:
  // x: one tensor, or two whose channels are concatenated.
  at::Tensor forward(at::TensorList x_BCDHW, const ops::LeakyRelu& leaky_relu = {}) const;
  void initialise(uint64_t seed) override;

  static constexpr int64_t kKernel = 4;
  static constexpr ops::ConvolutionParams kRule{{2, 2, 2}, {1, 1, 1}};
  bool is_transposed() const { return is_transposed_; }
  LocalRule rule() const override;
  Tensors weights() const override { return {weight, bias}; }
  int64_t num_channels(const Tensors& /*x*/) const override { return bias.size(0); }

  at::Tensor weight;  // (out, in, 4, 4, 4), transposed (in, out, 4, 4, 4)
  at::Tensor bias;    // (out)

 protected:
  BoxConvolution(std::string path, int64_t in_channels, int64_t out_channels, const ConvInit& initial, bool is_transposed);

 private:
  at::Tensor placed(at::TensorList x_BCDHW, const ops::PiecePlacement& placement, const ops::LeakyRelu& leaky_relu) const;

  ConvInit initial_;
  bool is_transposed_;
};

class StridedConv3d : public BoxConvolution {
 public:
  StridedConv3d(std::string path, int64_t in_channels, int64_t out_channels, const ConvInit& initial)
      : BoxConvolution(std::move(path), in_channels, out_channels, initial, /*is_transposed=*/false) {}
  void pretty_print(std::ostream& stream) const override;
};

class TransposedConv3d : public BoxConvolution {
 public:
  TransposedConv3d(std::string path, int64_t in_channels, int64_t out_channels, const ConvInit& initial)
      : BoxConvolution(std::move(path), in_channels, out_channels, initial, /*is_transposed=*/true) {}
  void pretty_print(std::ostream& stream) const override;
};

}  // namespace welkin::model
