// SPDX-License-Identifier: Apache-2.0
// Convolutions with kernel 1, which are linear layers over the channels of (B, C, H, W).
#pragma once

#include <ATen/core/Tensor.h>

#include "model/base/layer.h"

namespace welkin::model {

// A Conv2d of kernel 1. The matmul of rows (B, H W, C) and weight, before the bias, is a site. Initial values: weight N(0, gain /
// in), bias 0.
class PointwiseConv : public Layer {
 public:
  struct Options {
    int64_t in = 0, out = 0;
    bool with_bias = true;
    double gain = 1.0;
  };
  PointwiseConv(std::string path, const Options& options);

  at::Tensor forward(const at::Tensor& x_BCHW) const;
  at::Tensor forward_rows(const at::Tensor& x_BNC) const;
  // forward_rows(gelu(hidden)), keeping only `hidden` (ops/gemm/gelu_linear.h).
  at::Tensor forward_gelu_rows(const at::Tensor& hidden_BNC) const;
  std::vector<Site*> own_sites() override { return {&matmul_}; }
  void initialise(uint64_t seed) override;
  void pretty_print(std::ostream& stream) const override;

  at::Tensor weight;  // (out, in, 1, 1)
  at::Tensor bias;    // (out), undefined without bias

 private:
  at::Tensor with_bias(const at::Tensor& rows) const;

  Site matmul_;
  double gain_;
};

// "fwd": two convolutions under the names "0" and "2", with GELU between.
class PointwisePair : public Layer {
 public:
  struct Options {
    int64_t in = 0, hidden = 0, out = 0;
    bool last_bias = true;
    double gain = 1.0;  // of the second
  };
  PointwisePair(std::string path, const Options& options);

  at::Tensor forward(const at::Tensor& x_BCHW) const;
  std::vector<Site*> own_sites() override { return {&in_}; }
  void pretty_print(std::ostream& stream) const override { stream << "Sequential"; }

 private:
  Site in_;
  std::shared_ptr<PointwiseConv> first_, second_;
};

// A PointwisePair under the name "fwd", as in encoders, decoders and MLPs of makani; the whole of it is a site.
class PointwiseMlp : public Layer {
 public:
  PointwiseMlp(std::string path, const PointwisePair::Options& options);

  at::Tensor forward(const at::Tensor& x_BCHW) const;
  std::vector<Site*> own_sites() override { return {&whole_}; }
  void pretty_print(std::ostream& stream) const override { stream << "MLP"; }

 private:
  Site whole_;
  std::shared_ptr<PointwisePair> fwd_;
};

}  // namespace welkin::model
