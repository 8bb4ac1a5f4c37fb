// SPDX-License-Identifier: Apache-2.0
// LARS: momentum with a rate for each layer.
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>

#include <cmath>
#include <utility>

#include "ops/update/adaptive_update.h"
#include "train/optim/normed_optimizer.h"
#include "train/optim/update_spans.h"

namespace welkin::train {
namespace {

class Lars : public NormedOptimizer {
 public:
  Lars(const config::OptimizerConfig& config, std::vector<OptimizerParameter> parameters)
      : NormedOptimizer(std::move(parameters)), config_(config) {
    for (const OptimizerParameter& parameter : this->parameters()) velocity_.push_back(state_like(parameter.value));
  }

  std::vector<NamedState> states() override {
    std::vector<NamedState> all;
    for (size_t row = 0; row < velocity_.size(); ++row) all.push_back({"momentum." + parameters()[row].name, velocity_[row]});
    return all;
  }

 protected:
  Sums fused_sums(const StepLists& lists, const StepInputs& inputs, bool decays) override {
    if (!decays) return Sums(lists.rows.size());
    return ops::lars_sums(*update_spans(lists, velocity_, {}), rule(inputs, decays));
  }

  void fused_update(const StepLists& lists, const StepInputs& inputs, bool decays, const Sums& sums) override {
    const double rate = inputs.rate.item<double>();
    std::vector<float> rates;
    for (const auto& [values, gradients] : sums) {
      const bool is_adapted = decays && values > 0 && gradients > 0;
      rates.push_back(static_cast<float>(is_adapted ? rate * local_rate(std::sqrt(values), std::sqrt(gradients)) : rate));
    }
    ops::fused_lars(*update_spans(lists, velocity_, {}), rule(inputs, decays), rates);
  }

  SumTensors reference_sums(const Row& row, const StepInputs& /*inputs*/) override {
    return {row.value.square().sum(), row.gradient.square().sum()};
  }

  void reference_update(const Row& row, const StepInputs& inputs, const SumTensors& sums) override {
    const at::Tensor velocity = in_memory_order(velocity_[row.row]), one = at::ones_like(sums.first);
    const at::Tensor is_adapted = sums.first.gt(0).logical_and(sums.second.gt(0));
    const at::Tensor local = row.decays ? at::where(is_adapted, local_rate(sums.first.sqrt(), sums.second.sqrt()), one) : one;
    const at::Tensor moved = config_.momentum * velocity + (row.gradient + decay(row.decays) * row.value) * (inputs.rate * local);
    assign_unless_skipped(inputs, row.value, row.value - moved);
    assign_unless_skipped(inputs, velocity, moved);
  }

 private:
  template <typename Number>
  Number local_rate(const Number& of_values, const Number& of_gradients) const {
    return config_.trust_coefficient * of_values / (of_gradients + config_.weight_decay * of_values);
  }

  double decay(bool decays) const { return decays ? config_.weight_decay : 0.0; }

  ops::LarsRule rule(const StepInputs& inputs, bool decays) const {
    return {.gradient_scale = gradient_scale(inputs),
            .decay = static_cast<float>(decay(decays)),
            .momentum = static_cast<float>(config_.momentum)};
  }

  config::OptimizerConfig config_;
  std::vector<at::Tensor> velocity_;
};

}  // namespace

OptimizerPtr lars(const config::RunConfig& config, std::vector<OptimizerParameter> parameters) {
  return std::make_unique<Lars>(config.optimizer, std::move(parameters));
}

}  // namespace welkin::train
