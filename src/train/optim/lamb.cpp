// SPDX-License-Identifier: Apache-2.0
// LAMB: Adam's update, scaled to the parameter's norm, within bounds if they are set.
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ops/update/adaptive_update.h"
#include "train/optim/normed_optimizer.h"
#include "train/optim/update_spans.h"

namespace welkin::train {
namespace {

class Lamb : public NormedOptimizer {
 public:
  Lamb(const config::OptimizerConfig& config, std::vector<OptimizerParameter> parameters)
      : NormedOptimizer(std::move(parameters)), config_(config) {
    for (const OptimizerParameter& parameter : this->parameters()) {
      average_.push_back(state_like(parameter.value));
      square_average_.push_back(state_like(parameter.value));
    }
    const auto device = average_.empty() ? at::Device(at::kCPU) : average_.front().device();
    steps_ = at::zeros({}, at::TensorOptions(at::kFloat).device(device));
  }

  std::vector<NamedState> states() override {
    std::vector<NamedState> all = {{"steps", steps_}};
    for (size_t row = 0; row < average_.size(); ++row) {
      all.push_back({"exp_avg." + parameters()[row].name, average_[row]});
      all.push_back({"exp_avg_sq." + parameters()[row].name, square_average_[row]});
    }
    return all;
  }

 protected:
  void count(const StepInputs& inputs) override { steps_.add_(1 - inputs.found_inf); }

  Sums fused_sums(const StepLists& lists, const StepInputs& inputs, bool decays) override {
    return ops::lamb_sums(*update_spans(lists, average_, square_average_), rule(inputs, decays));
  }

  void fused_update(const StepLists& lists, const StepInputs& inputs, bool decays, const Sums& sums) override {
    const double rate = inputs.rate.item<double>();
    std::vector<float> steps;
    for (const auto& [values, updates] : sums) {
      const bool is_scaled = decays && values > 0 && updates > 0;
      steps.push_back(static_cast<float>(is_scaled ? rate * bounded(std::sqrt(values / updates)) : rate));
    }
    ops::fused_lamb(*update_spans(lists, average_, square_average_), rule(inputs, decays), steps);
  }

  SumTensors reference_sums(const Row& row, const StepInputs& inputs) override {
    const at::Tensor average = in_memory_order(average_[row.row]), square = in_memory_order(square_average_[row.row]);
    assign_unless_skipped(inputs, average, average + (1 - config_.betas[0]) * (row.gradient - average));
    assign_unless_skipped(inputs, square, config_.betas[1] * square + (1 - config_.betas[1]) * row.gradient * row.gradient);
    return {row.value.square().sum(), reference_direction(row).square().sum()};
  }

  void reference_update(const Row& row, const StepInputs& inputs, const SumTensors& sums) override {
    const at::Tensor one = at::ones_like(sums.first);
    const at::Tensor is_scaled = sums.first.gt(0).logical_and(sums.second.gt(0));
    const at::Tensor quotient = (sums.first / sums.second).sqrt().clamp(config_.lamb_min_ratio, largest_ratio());
    const at::Tensor ratio = row.decays ? at::where(is_scaled, quotient, one) : one;
    assign_unless_skipped(inputs, row.value, row.value - reference_direction(row) * (inputs.rate * ratio));
  }

 private:
  // Before the first applied step the averages are zero, and so is the direction.
  at::Tensor reference_direction(const Row& row) const {
    const at::Tensor average = in_memory_order(average_[row.row]), square = in_memory_order(square_average_[row.row]);
    const at::Tensor steps = steps_.to(at::kDouble).clamp_min(1);
    const at::Tensor first = 1 - at::pow(config_.betas[0], steps), second = 1 - at::pow(config_.betas[1], steps);
    return average / first / ((square / second).sqrt() + config_.eps) + decay(row.decays) * row.value;
  }

  double largest_ratio() const {
    return config_.lamb_max_ratio > 0 ? config_.lamb_max_ratio : std::numeric_limits<double>::infinity();
  }
  double bounded(double ratio) const { return std::min(std::max(ratio, config_.lamb_min_ratio), largest_ratio()); }

  double decay(bool decays) const { return decays ? config_.weight_decay : 0.0; }

  ops::LambRule rule(const StepInputs& inputs, bool decays) const {
    const auto steps = steps_.item<double>();
    const auto single = [](double x) { return static_cast<float>(x); };
    return {.gradient_scale = gradient_scale(inputs),
            .average_share = single(1 - config_.betas[0]),
            .square_keep = single(config_.betas[1]),
            .square_share = single(1 - config_.betas[1]),
            .factor = single(1 / (1 - std::pow(config_.betas[0], steps))),
            .root_factor = single(1 / std::sqrt(1 - std::pow(config_.betas[1], steps))),
            .epsilon = single(config_.eps),
            .decay = single(decay(decays))};
  }

  config::OptimizerConfig config_;
  std::vector<at::Tensor> average_, square_average_;
  at::Tensor steps_;  // () float32, applied steps
};

}  // namespace

OptimizerPtr lamb(const config::RunConfig& config, std::vector<OptimizerParameter> parameters) {
  return std::make_unique<Lamb>(config.optimizer, std::move(parameters));
}

}  // namespace welkin::train
