// SPDX-License-Identifier: Apache-2.0
// A loss of one's own: Huber's, quadratic within one deviation and linear beyond, so that a few extreme cells do not rule the
// gradient.
//   welkin --plugin build/release/examples/libhuber_loss.so train --yaml_config config/real-data/enzo.yaml --config unet --set
//   loss=huber
// A loss is a sum per sample and a finish; whatever the finish divides by is a column too, so that sums over ranks stay right.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/huber_loss.h>
#include <ATen/ops/stack.h>

#include "train/learn/registries.h"

namespace {

using namespace welkin;

class Huber : public train::Loss {
 public:
  at::Tensor partial(const at::Tensor& prediction, const at::Tensor& target) const override {
    const at::Tensor p = train::widen(prediction);
    const at::Tensor error = at::huber_loss(p, train::widen(target), at::Reduction::None, /*delta=*/1.0).flatten(1);
    return at::stack(
        {error.sum(1), at::full({error.size(0)}, static_cast<double>(error.size(1)), p.options().requires_grad(false))}, 1);
  }

  at::Tensor finish(const at::Tensor& sums) const override { return sums.select(1, 0) / sums.select(1, 1); }
};

}  // namespace

extern "C" void welkin_register(welkin::train::Registries& registries) {
  registries.losses.add("huber", [](const config::RunConfig&) { return std::make_unique<Huber>(); });
}
