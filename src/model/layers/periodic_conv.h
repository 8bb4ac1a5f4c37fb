// SPDX-License-Identifier: Apache-2.0
// Convolutions and pooling on fields of the globe: periodic along longitude, padded with zeros beyond the poles. Channels are
// read from the weights, so a layer that makes a part of them runs the same code.
#pragma once

#include <ATen/core/Tensor.h>

#include "model/layers/local_layer.h"

namespace welkin::model {

// A Conv2d of kernel 3 without bias, (B, C, H, W) -> (B, C', H, W). Initial values: PyTorch's default for a Conv2d, uniform in
// +-1/sqrt(fan_in).
class PeriodicConv : public LocalLayer {
 public:
  PeriodicConv(std::string path, int64_t in_channels, int64_t out_channels);
  at::Tensor forward(const at::Tensor& x_BCHW) const;
  std::vector<Site*> own_sites() override { return {&whole_}; }
  void initialise(uint64_t seed) override;
  void pretty_print(std::ostream& stream) const override;
  LocalRule rule() const override;
  Tensors weights() const override { return {weight}; }
  int64_t num_channels(const Tensors& /*x*/) const override { return weight.size(0); }

  at::Tensor weight;  // (C', C, 3, 3)

 private:
  at::Tensor placed(const at::Tensor& x_BCHW, const ops::PiecePlacement& placement) const;

  Site whole_;
};

// A ConvTranspose2d of kernel and stride 2, which doubles both edges. Initial values as above, of weight and bias.
class DoublingConv : public LocalLayer {
 public:
  DoublingConv(std::string path, int64_t in_channels, int64_t out_channels);
  at::Tensor forward(const at::Tensor& x_BCHW) const;
  std::vector<Site*> own_sites() override { return {&whole_}; }
  void initialise(uint64_t seed) override;
  void pretty_print(std::ostream& stream) const override;
  LocalRule rule() const override;
  Tensors weights() const override { return {weight, bias}; }
  int64_t num_channels(const Tensors& /*x*/) const override { return bias.size(0); }

  at::Tensor weight;  // (C, C', 2, 2)
  at::Tensor bias;    // (C')

 private:
  at::Tensor placed(const at::Tensor& x_BCHW, const ops::PiecePlacement& placement) const;

  Site whole_;
};

// Maximum of each 2 x 2 points, (B, C, H, W) -> (B, C, H/2, W/2).
class HalvingPool : public LocalLayer {
 public:
  using LocalLayer::LocalLayer;
  at::Tensor forward(const at::Tensor& x_BCHW) const;
  void pretty_print(std::ostream& stream) const override;
  LocalRule rule() const override;
  int64_t num_channels(const Tensors& x) const override { return x.front().size(1); }
};

}  // namespace welkin::model
