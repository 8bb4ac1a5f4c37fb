// SPDX-License-Identifier: Apache-2.0
// An optimizer of one's own: Lion (Chen et al., arXiv:2302.06675), one state per weight and steps of equal size.
//   welkin --plugin build/release/examples/liblion_optimizer.so train ... --set optimizer=Lion --set lr=1e-4
// Its states are saved, resumed and checked like Adam's. found_inf stays on the device: a skipped step multiplies by zero.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <utility>

#include "train/learn/registries.h"

namespace {

using namespace welkin;

class Lion : public train::Optimizer {
 public:
  Lion(const config::OptimizerConfig& config, std::vector<train::OptimizerParameter> parameters)
      : beta1_(config.betas.at(0)), beta2_(config.betas.at(1)), decay_(config.weight_decay), parameters_(std::move(parameters)) {
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
    at::Tensor direction = (beta1_ * momentum + (1 - beta1_) * gradient).sign();
    if (parameter.decays) direction = direction + decay_ * parameter.value;
    parameter.value.sub_((direction * rate).to(parameter.value.dtype()));
    momentum.add_((1 - beta2_) * applies * (gradient - momentum));
  }

  double beta1_, beta2_, decay_;
  std::vector<train::OptimizerParameter> parameters_;
  std::vector<at::Tensor> momentum_;
};

}  // namespace

extern "C" void welkin_register(welkin::train::Registries& registries) {
  registries.optimizers.add("Lion", {.make =
                                         [](const config::RunConfig& config, std::vector<train::OptimizerParameter> parameters) {
                                           return std::make_unique<Lion>(config.optimizer, std::move(parameters));
                                         },
                                     .states = [](const config::OptimizerConfig&) { return 1; }});
}
