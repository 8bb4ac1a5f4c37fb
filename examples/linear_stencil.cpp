// SPDX-License-Identifier: Apache-2.0
// A model of one's own: the best linear relation between boxes, one 3x3x3 stencil from the input's to the output's channels. It
// is the yardstick beside the U-Net in docs/results/real-data.md.
//   welkin --plugin build/release/examples/liblinear_stencil.so train --yaml_config config/real-data/enzo.yaml --config linear
// Everything that the verbs need follows from the three overrides: training, checkpoints, evaluation and prediction.
#include <ATen/ops/conv3d.h>
#include <ATen/ops/pad.h>
#include <ATen/ops/zeros.h>

#include "model/base/init.h"
#include "train/learn/registries.h"

namespace {

using namespace welkin;

constexpr int64_t kTaps = 3;

class LinearStencil : public model::Model {
 public:
  explicit LinearStencil(const model::ModelShape& shape)
      : weight_(register_parameter("weight", at::zeros({shape.out_channels, shape.in_channels, kTaps, kTaps, kTaps}))),
        bias_(register_parameter("bias", at::zeros({shape.out_channels}))) {}

  // (B, C, D, H, W) -> (B, C', D, H, W). A crop's faces repeat: the slope there is one-sided.
  at::Tensor forward(const at::Tensor& x_BCDHW, const model::ForwardContext& /*context*/) override {
    return at::conv3d(at::pad(x_BCDHW, {1, 1, 1, 1, 1, 1}, "replicate"), weight_, bias_);
  }

  void initialise(uint64_t seed) override {
    model::fill_normal(weight_, seed, "weight", 0.02);
    model::fill_constant(bias_, 0.0);
  }

 private:
  at::Tensor weight_;  // (C', C, 3, 3, 3)
  at::Tensor bias_;    // (C')
};

// For MFU and `plan estimate`: a multiply-add for every weight and cell.
model::ModelCost cost(const config::ModelConfig& /*config*/, const model::ModelShape& shape) {
  int64_t cells = 1;
  for (const int64_t edge : shape.grid) cells *= edge;
  const int64_t weights = shape.out_channels * shape.in_channels * kTaps * kTaps * kTaps;
  const int64_t values = cells * (shape.in_channels + shape.out_channels);
  model::ModelCost sum;
  sum.add(model::layer_cost(
      "stencil",
      {.flops = 2.0 * static_cast<double>(weights * cells), .bytes = model::kFloatBytes * static_cast<double>(weights + values)},
      weights, shape.out_channels, /*of_input=*/true));
  return sum;
}

model::ModelEntry linear_stencil() {
  return {.build = [](const config::ModelConfig&, const model::ModelShape& shape) -> model::ModelPtr {
            return std::make_shared<LinearStencil>(shape);
          },
          .cost = cost,
          .default_loss = "relative_l2",
          .has_attention = false};
}

}  // namespace

extern "C" void welkin_register(welkin::train::Registries& registries) {
  registries.models.add("linear_stencil", linear_stencil());
}
