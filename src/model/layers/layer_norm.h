// SPDX-License-Identifier: Apache-2.0
// Layer normalisation over the last dim, with weight and bias; the whole layer is a site.
#pragma once

#include <ATen/core/Tensor.h>

#include "model/base/layer.h"
#include "ops/norm/residual_norm.h"

namespace welkin::model {

// x (..., width) -> the same shape. Initial values: weight 1, bias 0.
class LayerNorm : public Layer {
 public:
  LayerNorm(std::string path, int64_t width, double epsilon = 1e-6);

  at::Tensor forward(const at::Tensor& x) const;
  // x + branch and the norm of that, as one operator if the site has no wrapper.
  ops::ResidualNorm of_sum(const at::Tensor& x, const at::Tensor& branch) const;
  std::vector<Site*> own_sites() override { return {&whole_}; }
  void initialise(uint64_t seed) override;
  void pretty_print(std::ostream& stream) const override;

  at::Tensor weight, bias;  // (width)

 private:
  Site whole_;
  double epsilon_;
};

}  // namespace welkin::model
