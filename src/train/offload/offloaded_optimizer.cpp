// SPDX-License-Identifier: Apache-2.0
#include "train/offload/offloaded_optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

namespace welkin::train {

UnitWeights::UnitWeights(WeightHolder* holder, const std::vector<StateWindows>& units) : holder_(holder) {
  for (const StateWindows& windows : units) {
    parameters_.emplace_back();
    for (const StateWindow& window : windows) parameters_.back().push_back(window.row);
  }
}

void UnitWeights::before(size_t unit) {
  if (holder_ == nullptr) return;
  if (unit == 0) holder_->start(parameters_[0]);
  if (unit + 1 < parameters_.size()) holder_->start(parameters_[unit + 1]);
  holder_->wait(parameters_[unit]);
}

void UnitWeights::after(size_t unit, bool is_changed) {
  if (holder_ != nullptr) holder_->let_go(parameters_[unit], is_changed);
}

OffloadedOptimizer::OffloadedOptimizer(const config::RunConfig& config, const OptimizerFactory& make,
                                       std::vector<OptimizerParameter> parameters, const OffloadPlan& plan)
    : states_(std::move(parameters), plan.device, plan.make_store, plan.staged),
      windows_(state_units(states_.parameters(), plan.scope, plan.bytes_per_element, plan.buffer_bytes)),
      weights_(plan.weights, windows_) {
  for (const StateWindows& windows : windows_) {
    optimizers_.push_back(make(config, parameters_of(windows)));
    states_.add(windows, optimizers_.back()->states());
  }
  states_.begin();
}

// The inputs of a unit: the ranks' exchange numbers parameters among all.
StepInputs OffloadedOptimizer::inputs_of(const StepInputs& inputs, const StateWindows& windows) const {
  StepInputs own = inputs;
  if (!inputs.sum_over_parts) return own;
  std::vector<int64_t> rows;
  for (const StateWindow& window : windows) rows.push_back(static_cast<int64_t>(window.row));
  const auto num = static_cast<int64_t>(states_.parameters().size());
  own.sum_over_parts = [rows, num, sum = inputs.sum_over_parts](const at::Tensor& numbers) {
    const at::Tensor index = at::tensor(rows, at::kLong).to(numbers.device());
    return sum(at::zeros({numbers.size(0), num}, numbers.options()).index_copy(1, index, numbers)).index_select(1, index);
  };
  const auto among_all = [rows](const std::vector<size_t>& of_unit) {
    std::vector<size_t> numbers;
    for (const size_t row : of_unit) numbers.push_back(static_cast<size_t>(rows[row]));
    return numbers;
  };
  own.add_over_parts = [among_all, &inputs](const std::vector<size_t>& of_unit, const std::vector<at::Tensor>& values) {
    inputs.add_over_parts(among_all(of_unit), values);
  };
  own.on_wholes = [among_all, &inputs](const std::vector<size_t>& of_unit, const WholeWork& work) {
    inputs.on_wholes(among_all(of_unit), work);
  };
  return own;
}

// A skipped step reads nothing if the host knows that it is skipped.
void OffloadedOptimizer::step(const StepInputs& inputs) {
  const at::NoGradGuard no_grad;
  if (inputs.found_inf.is_cpu() && inputs.found_inf.item<float>() != 0) return;
  states_.pass([&](size_t unit) {
    weights_.before(unit);
    renew_windows(windows_[unit], states_.parameters(), /*has_gradients=*/true);
    optimizers_[unit]->step(inputs_of(inputs, windows_[unit]));
    renew_windows(windows_[unit], states_.parameters(), /*has_gradients=*/false);
    weights_.after(unit, /*is_changed=*/true);
  });
}

}  // namespace welkin::train
