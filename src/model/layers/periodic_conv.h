// SPDX-License-Identifier: Apache-2.0
// Convolutions on fields of the globe: they go around it along longitude, and find zeros beyond the poles. Channels are read from
// the weights, so that a layer that makes a part of them runs the same code.
#pragma once

#include <ATen/core/Tensor.h>

#include "model/base/layer.h"

namespace welkin::model {

// A Conv2d of kernel 3 without bias, (B, C, H, W) -> (B, C', H, W). Initial values: PyTorch's default for a Conv2d, uniform in
// +-1/sqrt(fan_in).
class PeriodicConv : public Layer {
 public:
  PeriodicConv(std::string path, int64_t in_channels, int64_t out_channels);
  at::Tensor forward(const at::Tensor& x_BCHW) const;
  std::vector<Site*> own_sites() override { return {&whole_}; }
  void initialise(uint64_t seed) override;
  void pretty_print(std::ostream& stream) const override;

  at::Tensor weight;  // (C', C, 3, 3)

 private:
  Site whole_;
};

// A ConvTranspose2d of kernel and stride 2, which doubles both edges. Initial values as above, of weight and bias.
class DoublingConv : public Layer {
 public:
  DoublingConv(std::string path, int64_t in_channels, int64_t out_channels);
  at::Tensor forward(const at::Tensor& x_BCHW) const;
  std::vector<Site*> own_sites() override { return {&whole_}; }
  void initialise(uint64_t seed) override;
  void pretty_print(std::ostream& stream) const override;

  at::Tensor weight;  // (C, C', 2, 2)
  at::Tensor bias;    // (C')

 private:
  Site whole_;
};

}  // namespace welkin::model
