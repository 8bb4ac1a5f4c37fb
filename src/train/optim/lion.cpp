// SPDX-License-Identifier: Apache-2.0
// Lion: steps of equal size, one state.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <utility>

#include "ops/update/adaptive_update.h"
#include "train/optim/optimizer.h"
#include "train/optim/update_spans.h"

namespace welkin::train {
namespace {

class Lion : public Optimizer {
 public:
  Lion(const config::OptimizerConfig& config, std::vector<OptimizerParameter> parameters)
      : config_(config), parameters_(std::move(parameters)) {
    for (const OptimizerParameter& parameter : parameters_) average_.push_back(state_like(parameter.value));
  }

  void step(const StepInputs& inputs) override {
    const at::NoGradGuard no_grad;
    update(inputs, /*decays=*/true);
    update(inputs, /*decays=*/false);
  }

  bool takes_gradient_scale() const override { return true; }

  std::vector<NamedState> states() override {
    std::vector<NamedState> all;
    for (size_t row = 0; row < parameters_.size(); ++row) all.push_back({"exp_avg." + parameters_[row].name, average_[row]});
    return all;
  }

 private:
  void update(const StepInputs& inputs, bool decays) {
    const StepLists lists = with_gradients(parameters_, decays);
    if (lists.rows.empty()) return;
    if (const auto runs = update_spans(lists, average_, {})) {
      if (inputs.found_inf.item<float>() == 0) ops::fused_lion(*runs, rule(inputs, decays));
      return;
    }
    for (size_t i = 0; i < lists.rows.size(); ++i) reference(inputs, decays, lists.values[i], lists.gradients[i], lists.rows[i]);
  }

  void reference(const StepInputs& inputs, bool decays, const at::Tensor& value, const at::Tensor& gradient, size_t row) {
    const at::Tensor average = in_memory_order(average_[row]);
    const at::Tensor difference = safe_gradient(inputs, gradient) - average;
    const at::Tensor direction = (average + (1 - config_.betas[0]) * difference).sign();
    const double decay = decays ? config_.weight_decay : 0.0;
    assign_unless_skipped(inputs, value, value * (1 - inputs.rate * decay) - direction * inputs.rate);
    assign_unless_skipped(inputs, average, average + (1 - config_.betas[1]) * difference);
  }

  ops::LionRule rule(const StepInputs& inputs, bool decays) const {
    const double rate = inputs.rate.item<double>(), decay = decays ? config_.weight_decay : 0.0;
    return {.gradient_scale = gradient_scale(inputs),
            .keep = static_cast<float>(1 - rate * decay),
            .rate = static_cast<float>(rate),
            .mix = static_cast<float>(1 - config_.betas[0]),
            .share = static_cast<float>(1 - config_.betas[1])};
  }

  config::OptimizerConfig config_;
  std::vector<OptimizerParameter> parameters_;
  std::vector<at::Tensor> average_;
};

}  // namespace

OptimizerPtr lion(const config::RunConfig& config, std::vector<OptimizerParameter> parameters) {
  return std::make_unique<Lion>(config.optimizer, std::move(parameters));
}

}  // namespace welkin::train
