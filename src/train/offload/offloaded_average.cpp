// SPDX-License-Identifier: Apache-2.0
#include "train/offload/offloaded_average.h"

#include <ATen/core/grad_mode.h>

namespace welkin::train {

OffloadedAverage::OffloadedAverage(const config::OptimizerConfig& config, std::vector<OptimizerParameter> parameters,
                                   const OffloadPlan& plan)
    : states_(std::move(parameters), plan.device, plan.make_store, plan.staged),
      windows_(state_units(states_.parameters(), plan.weights == nullptr ? UpdateScope::Element : UpdateScope::Parameter,
                           sizeof(float), plan.buffer_bytes)),
      weights_(plan.weights, windows_) {
  for (size_t unit = 0; unit < windows_.size(); ++unit) {
    weights_.before(unit);
    averages_.push_back(std::make_unique<HeldAverage>(config, parameters_of(windows_[unit])));
    states_.add(windows_[unit], averages_.back()->states());
    weights_.after(unit, /*is_changed=*/false);
  }
  states_.begin();
}

void OffloadedAverage::each(bool changes_weights, const std::function<void(WeightAverage&)>& body) {
  const at::NoGradGuard no_grad;
  states_.pass([&](size_t unit) {
    weights_.before(unit);
    renew_windows(windows_[unit], states_.parameters(), /*has_gradients=*/false);
    body(*averages_[unit]);
    weights_.after(unit, changes_weights);
  });
}

void OffloadedAverage::update(const at::Tensor& found_inf) {
  if (found_inf.is_cpu() && found_inf.item<float>() != 0) return;
  each(/*changes_weights=*/false, [&](WeightAverage& average) { average.update(found_inf); });
}

void OffloadedAverage::restart() {
  each(/*changes_weights=*/false, [](WeightAverage& average) { average.restart(); });
}

void OffloadedAverage::swap() {
  each(/*changes_weights=*/true, [](WeightAverage& average) { average.swap(); });
}

}  // namespace welkin::train
