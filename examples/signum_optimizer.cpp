// SPDX-License-Identifier: Apache-2.0
// An optimizer of one's own: Signum (Bernstein et al., arXiv:1802.04434, algorithm 2), one state per weight and steps of equal
// size.
//   welkin --plugin build/release/examples/libsignum_optimizer.so train ... --set optimizer=Signum --set lr=1e-4
// Its states are saved, resumed and checked like Adam's. found_inf stays on the device: a skipped step multiplies by zero.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <utility>

#include "train/learn/registries.h"

namespace {

using namespace welkin;

class Signum : public train::Optimizer {
 public:
  Signum(const config::OptimizerConfig& config, std::vector<train::OptimizerParameter> parameters)
      : momentum_share_(1 - config.betas.at(0)), decay_(config.weight_decay), parameters_(std::move(parameters)) {
    for (const auto& parameter : parameters_) momentum_.push_back(train::state_like(parameter.value));
  }

  void step(const train::StepInputs& inputs) override {
    const at::NoGradGuard no_grad;
    const at::Tensor applies = 1 - inputs.found_inf;
    for (size_t row = 0; row < parameters_.size(); ++row) {
      const at::Tensor& gradient = parameters_[row].value.grad();
      if (gradient.defined())
        update(parameters_[row], gradient.nan_to_num(0, 0, 0), momentum_[row], inputs.rate * applies, applies);
    }
  }

  std::vector<train::NamedState> states() override {
    std::vector<train::NamedState> all;
    for (size_t row = 0; row < parameters_.size(); ++row) all.push_back({"momentum." + parameters_[row].name, momentum_[row]});
    return all;
  }

 private:
  // `rate` and `applies` are 0 when the step is skipped: then nothing changes.
  void update(const train::OptimizerParameter& parameter, const at::Tensor& gradient, at::Tensor& momentum,
              const at::Tensor& rate, const at::Tensor& applies) const {
    momentum.add_(momentum_share_ * applies * (gradient - momentum));
    at::Tensor direction = momentum.sign();
    if (parameter.decays) direction = direction + decay_ * parameter.value;
    parameter.value.sub_((direction * rate).to(parameter.value.dtype()));
  }

  double momentum_share_, decay_;
  std::vector<train::OptimizerParameter> parameters_;
  std::vector<at::Tensor> momentum_;
};

}  // namespace

extern "C" void welkin_register(welkin::train::Registries& registries) {
  registries.optimizers.add("Signum",
                            {.make =
                                 [](const config::RunConfig& config, std::vector<train::OptimizerParameter> parameters) {
                                   return std::make_unique<Signum>(config.optimizer, std::move(parameters));
                                 },
                             .states = [](const config::OptimizerConfig&) { return 1; }});
}
