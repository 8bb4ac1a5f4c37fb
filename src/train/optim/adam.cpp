// SPDX-License-Identifier: Apache-2.0
// Adam and AdamW.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "ops/device/device_ops.h"
#include "train/optim/lean_adam.h"
#include "train/optim/optimizer.h"
#include "train/optim/update_spans.h"

namespace welkin::train {
namespace {

enum class WeightDecay { InGradient, Decoupled };

class Adam : public Optimizer {
 public:
  Adam(const config::OptimizerConfig& config, std::vector<OptimizerParameter> parameters, WeightDecay kind)
      : config_(config), kind_(kind), parameters_(std::move(parameters)) {
    for (const OptimizerParameter& parameter : parameters_) {
      average_.push_back(state_like(parameter.value));
      square_average_.push_back(state_like(parameter.value));
    }
    const auto device = parameters_.empty() ? at::Device(at::kCPU) : parameters_.front().value.device();
    steps_ = at::zeros({}, at::TensorOptions(at::kFloat).device(device));
  }

  void step(const StepInputs& inputs) override {
    const at::NoGradGuard no_grad;
    steps_.add_(1 - inputs.found_inf);
    update(inputs, /*decays=*/true);
    update(inputs, /*decays=*/false);
  }

  bool takes_gradient_scale() const override { return true; }

  std::vector<NamedState> states() override {
    std::vector<NamedState> all = {{"steps", steps_}};
    for (size_t row = 0; row < parameters_.size(); ++row) {
      all.push_back({"exp_avg." + parameters_[row].name, average_[row]});
      all.push_back({"exp_avg_sq." + parameters_[row].name, square_average_[row]});
    }
    return all;
  }

 private:
  void update(const StepInputs& inputs, bool decays) {
    const StepLists lists = with_gradients(parameters_, decays);
    if (lists.rows.empty()) return;
    if (const auto runs = device_update_spans(lists, average_, square_average_)) {
      ops::device_ops().update.adam(*runs, settings(decays), update_scalars(inputs, steps_));
      return;
    }
    if (const auto runs = update_spans(lists, average_, square_average_)) {
      if (inputs.found_inf.item<float>() == 0) ops::fused_adam(*runs, rule(inputs, decays));
      return;
    }
    apply_gradient_scale(inputs, lists.gradients);
    std::vector<at::Tensor> average, square_average;
    for (const size_t row : lists.rows) {
      average.push_back(in_memory_order(average_[row]));
      square_average.push_back(in_memory_order(square_average_[row]));
    }
    // One count for all: the kernels only read it.
    const std::vector<at::Tensor> steps(lists.rows.size(), steps_);
    const auto kernel =
        kind_ == WeightDecay::Decoupled ? static_cast<Kernel>(at::_fused_adamw_) : static_cast<Kernel>(at::_fused_adam_);
    kernel(lists.values, lists.gradients, average, square_average, /*max_exp_avg_sqs=*/{}, steps, inputs.rate, config_.betas[0],
           config_.betas[1], decays ? config_.weight_decay : 0.0, config_.eps, /*amsgrad=*/false, /*maximize=*/false,
           /*grad_scale=*/{}, inputs.found_inf);
  }

  ops::AdamSettings settings(bool decays) const {
    return {.beta1 = config_.betas[0],
            .beta2 = config_.betas[1],
            .epsilon = config_.eps,
            .decay = decays ? config_.weight_decay : 0.0,
            .decoupled = kind_ == WeightDecay::Decoupled};
  }

  // On a CPU the scalars lie in memory.
  ops::AdamRule rule(const StepInputs& inputs, bool decays) const {
    return adam_rule({.rate = inputs.rate.item<double>(),
                      .steps = steps_.item<double>(),
                      .decay = decays ? config_.weight_decay : 0.0,
                      .decoupled = kind_ == WeightDecay::Decoupled,
                      .gradient_scale = gradient_scale(inputs)},
                     config_);
  }

  using Kernel = void (*)(at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                          const at::Tensor&, double, double, double, double, bool, bool, const std::optional<at::Tensor>&,
                          const std::optional<at::Tensor>&);

  config::OptimizerConfig config_;
  WeightDecay kind_;
  std::vector<OptimizerParameter> parameters_;
  std::vector<at::Tensor> average_, square_average_;
  at::Tensor steps_;  // () float32, applied steps; exact up to 2^24
};

}  // namespace

OptimizerPtr adam(const config::RunConfig& config, std::vector<OptimizerParameter> parameters) {
  if (config.optimizer.optimizer_state != config::OptimizerState::Fp32) return lean_adam(config, std::move(parameters), adam);
  return std::make_unique<Adam>(config.optimizer, std::move(parameters), WeightDecay::InGradient);
}

OptimizerPtr adamw(const config::RunConfig& config, std::vector<OptimizerParameter> parameters) {
  if (config.optimizer.optimizer_state != config::OptimizerState::Fp32) return lean_adam(config, std::move(parameters), adamw);
  return std::make_unique<Adam>(config.optimizer, std::move(parameters), WeightDecay::Decoupled);
}

}  // namespace welkin::train
