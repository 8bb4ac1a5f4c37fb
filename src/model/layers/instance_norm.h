// SPDX-License-Identifier: Apache-2.0
// Instance normalisation of (B, C, H, W): each channel of each sample by its own mean and deviation over the points.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "model/base/layer.h"

namespace welkin::model {

// Runs in float32, also under autocast; the whole layer is a site. Initial values: weight 1, bias 0.
class InstanceNorm : public Layer {
 public:
  InstanceNorm(std::string path, int64_t channels, double epsilon = 1e-6);

  at::Tensor forward(const at::Tensor& x_BCHW) const;
  std::vector<Site*> own_sites() override { return {&whole_}; }
  void initialise(uint64_t seed) override;
  void pretty_print(std::ostream& stream) const override;

  // Set by code that cuts samples into blocks: normalises a block by mean and deviation of the whole. Empty: fields are whole.
  using OfBlock =
      std::function<at::Tensor(const at::Tensor& x_BCHW, const at::Tensor& weight, const at::Tensor& bias, double epsilon)>;
  OfBlock of_block;

  at::Tensor weight, bias;  // (C)

 private:
  Site whole_;
  double epsilon_;
};

}  // namespace welkin::model
