// SPDX-License-Identifier: Apache-2.0
// Stochastic gradient descent with momentum.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_sgd.h>

#include <utility>

#include "ops/device/device_ops.h"
#include "train/optim/optimizer.h"
#include "train/optim/update_spans.h"

namespace welkin::train {
namespace {

class Sgd : public Optimizer {
 public:
  Sgd(const config::OptimizerConfig& config, std::vector<OptimizerParameter> parameters)
      : config_(config), parameters_(std::move(parameters)) {
    for (const OptimizerParameter& parameter : parameters_) velocity_.push_back(state_like(parameter.value));
  }

  void step(const StepInputs& inputs) override {
    const at::NoGradGuard no_grad;
    update(inputs, /*decays=*/true);
    update(inputs, /*decays=*/false);
  }

  bool takes_gradient_scale() const override { return true; }

  std::vector<NamedState> states() override {
    std::vector<NamedState> all;
    for (size_t row = 0; row < parameters_.size(); ++row) all.push_back({"momentum." + parameters_[row].name, velocity_[row]});
    return all;
  }

 private:
  void update(const StepInputs& inputs, bool decays) {
    const StepLists lists = with_gradients(parameters_, decays);
    if (lists.rows.empty()) return;
    if (const auto runs = device_update_spans(lists, velocity_, {})) {
      ops::device_ops().update.sgd(*runs, {.momentum = config_.momentum, .decay = decays ? config_.weight_decay : 0.0},
                                   update_scalars(inputs, {}));
      return;
    }
    if (const auto runs = update_spans(lists, velocity_, {})) {
      if (inputs.found_inf.item<float>() == 0) ops::fused_sgd(*runs, rule(inputs, decays));
      return;
    }
    apply_gradient_scale(inputs, lists.gradients);
    std::vector<at::Tensor> velocity;
    for (const size_t row : lists.rows) velocity.push_back(in_memory_order(velocity_[row]));
    // The velocities start at zero, so the first step needs no special case (is_first_step, which the host would have to
    // know).
    at::_fused_sgd_(lists.values, lists.gradients, velocity, decays ? config_.weight_decay : 0.0, config_.momentum, inputs.rate,
                    /*dampening=*/0.0, /*nesterov=*/false, /*maximize=*/false, /*is_first_step=*/false, /*grad_scale=*/{},
                    inputs.found_inf);
  }

  ops::SgdRule rule(const StepInputs& inputs, bool decays) const {
    return {.gradient_scale = gradient_scale(inputs),
            .decay = static_cast<float>(decays ? config_.weight_decay : 0.0),
            .momentum = static_cast<float>(config_.momentum),
            .rate = static_cast<float>(inputs.rate.item<double>())};
  }

  config::OptimizerConfig config_;
  std::vector<OptimizerParameter> parameters_;
  std::vector<at::Tensor> velocity_;
};

}  // namespace

OptimizerPtr sgd(const config::RunConfig& config, std::vector<OptimizerParameter> parameters) {
  return std::make_unique<Sgd>(config.optimizer, std::move(parameters));
}

}  // namespace welkin::train
