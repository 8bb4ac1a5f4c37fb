// SPDX-License-Identifier: Apache-2.0
// The MLP of a transformer block: fc2(gelu(fc1(x))), each followed by dropout. Widths are read from tensors, so a layer that
// holds a part of the hidden features runs the same code.
#pragma once

#include <ATen/core/Tensor.h>

#include "model/base/forward_context.h"
#include "model/base/layer.h"
#include "model/layers/dropout.h"
#include "model/layers/linear.h"

namespace welkin::model {

struct MlpOptions {
  int64_t width = 384;
  int64_t hidden = 1536;
  double dropout = 0.0;
};

// (B, N, width) -> the same shape.
class Mlp : public Layer {
 public:
  Mlp(std::string path, const MlpOptions& options);
  at::Tensor forward(const at::Tensor& x_BND, const ForwardContext& context) const;
  std::vector<Site*> own_sites() override { return {&whole_, &in_}; }
  void pretty_print(std::ostream& stream) const override { stream << "Mlp"; }

 private:
  at::Tensor expand(const at::Tensor& x_BND, const ForwardContext& context) const;

  Site whole_, in_;
  std::shared_ptr<Linear> fc1_, fc2_;
  std::shared_ptr<Dropout> hidden_drop_, drop_;
};

}  // namespace welkin::model
