// SPDX-License-Identifier: Apache-2.0
// A loss of one's own: the logarithm of the hyperbolic cosine of an error, a square near zero and a line far from it, so that a
// few extreme cells do not rule the gradient.
//   welkin --plugin build/release/examples/liblog_cosh_loss.so train --yaml_config config/real-data/enzo.yaml --config unet --set
//   loss=log_cosh
// A loss is a sum per sample and a finish; whatever the finish divides by is a column too, so that sums over ranks stay right.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/stack.h>

#include <numbers>

#include "train/learn/registries.h"

namespace {

using namespace welkin;

class LogCosh : public train::Loss {
 public:
  // log cosh e = e + log(1 + exp(-2 e)) - log 2, which does not overflow.
  at::Tensor partial(const at::Tensor& prediction, const at::Tensor& target) const override {
    const at::Tensor difference = train::widen(prediction) - train::widen(target);
    const at::Tensor error = (difference + at::softplus(difference * -2) - std::numbers::ln2).flatten(1);
    return at::stack(
        {error.sum(1), at::full({error.size(0)}, static_cast<double>(error.size(1)), error.options().requires_grad(false))}, 1);
  }

  at::Tensor finish(const at::Tensor& sums) const override { return sums.select(1, 0) / sums.select(1, 1); }
};

}  // namespace

extern "C" void welkin_register(welkin::train::Registries& registries) {
  registries.losses.add("log_cosh", [](const config::RunConfig&) { return std::make_unique<LogCosh>(); });
}
