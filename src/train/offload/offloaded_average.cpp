// SPDX-License-Identifier: Apache-2.0
#include "train/offload/offloaded_average.h"

#include <ATen/core/grad_mode.h>

namespace welkin::train {

OffloadedAverage::OffloadedAverage(const config::OptimizerConfig& config, std::vector<OptimizerParameter> parameters,
                                   const OffloadPlan& plan)
    : states_(std::move(parameters), plan.device, plan.make_store, plan.staged),
      windows_(state_units(states_.parameters(), UpdateScope::Element, sizeof(float), plan.buffer_bytes)) {
  for (const StateWindows& windows : windows_) {
    averages_.push_back(std::make_unique<HeldAverage>(config, parameters_of(windows)));
    states_.add(windows, averages_.back()->states());
  }
  states_.begin();
}

void OffloadedAverage::each(const std::function<void(WeightAverage&)>& body) {
  const at::NoGradGuard no_grad;
  states_.pass([&](size_t unit) {
    renew_windows(windows_[unit], states_.parameters(), /*has_gradients=*/false);
    body(*averages_[unit]);
  });
}

void OffloadedAverage::update(const at::Tensor& found_inf) {
  if (found_inf.is_cpu() && found_inf.item<float>() != 0) return;
  each([&](WeightAverage& average) { average.update(found_inf); });
}

void OffloadedAverage::restart() {
  each([](WeightAverage& average) { average.restart(); });
}

void OffloadedAverage::swap() {
  each([](WeightAverage& average) { average.swap(); });
}

}  // namespace welkin::train
