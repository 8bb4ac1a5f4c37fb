// SPDX-License-Identifier: Apache-2.0
// A linear layer whose matmul of input and weight, before the bias, is a site.
#pragma once

#include <ATen/core/Tensor.h>

#include "model/base/layer.h"

namespace welkin::model {

// x (..., in) -> (..., out) = x weight^T + bias. Widths are read from the weight, so a shard of it works unchanged.
// Initial values: weight N(0, 0.02^2), bias 0, as in the tutorials' ViT.
class Linear : public Layer {
 public:
  Linear(std::string path, int64_t in_features, int64_t out_features, bool with_bias = true);

  at::Tensor forward(const at::Tensor& x) const;
  // forward(gelu(first.forward(x))), keeping only the result of `first` (ops/gemm/gelu_linear.h).
  at::Tensor forward_gelu_of(const Linear& first, const at::Tensor& x) const;
  // Results of layers with bias for the same x, from one matmul if ops::linears() has one and their sites have no
  // wrappers.
  static std::vector<at::Tensor> forward_together(const std::vector<const Linear*>& layers, const at::Tensor& x);
  std::vector<Site*> own_sites() override { return {&matmul_}; }
  void initialise(uint64_t seed) override;
  void pretty_print(std::ostream& stream) const override;

  at::Tensor weight;  // (out, in)
  at::Tensor bias;    // (out), undefined without bias

 private:
  at::Tensor matmul(const at::Tensor& x) const;
  at::Tensor with_bias(const at::Tensor& matmul) const;

  Site matmul_;
};

}  // namespace welkin::model
