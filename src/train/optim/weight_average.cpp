// SPDX-License-Identifier: Apache-2.0
#include "train/optim/weight_average.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "ops/update/adaptive_update.h"

namespace welkin::train {

HeldAverage::HeldAverage(const config::OptimizerConfig& config, std::vector<OptimizerParameter> parameters)
    : config_(config), parameters_(std::move(parameters)) {
  for (const OptimizerParameter& parameter : parameters_) average_.push_back(state_like(parameter.value));
  const auto device = average_.empty() ? at::Device(at::kCPU) : average_.front().device();
  updates_ = at::zeros({}, at::TensorOptions(at::kFloat).device(device));
  restart();
}

void HeldAverage::restart() {
  const at::NoGradGuard no_grad;
  for (size_t row = 0; row < average_.size(); ++row) average_[row].copy_(parameters_[row].value);
  updates_.zero_();
}

double HeldAverage::share_at(double update) const {
  return 1 - (config_.ema_warmup ? std::min(config_.ema_decay, (1 + update) / (10 + update)) : config_.ema_decay);
}

void HeldAverage::update(const at::Tensor& found_inf) {
  const at::NoGradGuard no_grad;
  updates_.add_(1 - found_inf);
  const auto fits = [](const at::Tensor& x) { return x.is_cpu() && x.scalar_type() == at::kFloat; };
  if (std::ranges::all_of(average_, fits)) {
    if (found_inf.item<float>() != 0) return;
    std::vector<ops::UpdateSpan> runs;
    for (size_t row = 0; row < average_.size(); ++row) {
      runs.push_back({.count = average_[row].numel(),
                      .value = parameters_[row].value.mutable_data_ptr<float>(),
                      .first = average_[row].mutable_data_ptr<float>()});
    }
    ops::fused_average(runs, static_cast<float>(share_at(updates_.item<double>())));
    return;
  }
  at::Tensor decay = at::full({}, config_.ema_decay, updates_.options().dtype(at::kDouble));
  if (config_.ema_warmup) decay = decay.minimum((1 + updates_.to(at::kDouble)) / (10 + updates_.to(at::kDouble)));
  const at::Tensor share = (1 - decay) * (1 - found_inf);
  for (size_t row = 0; row < average_.size(); ++row) average_[row].add_((parameters_[row].value - average_[row]) * share);
}

void HeldAverage::swap() {
  const at::NoGradGuard no_grad;
  for (size_t row = 0; row < average_.size(); ++row) {
    const at::Tensor weight = parameters_[row].value.detach().clone();
    parameters_[row].value.copy_(average_[row]);
    average_[row].copy_(weight);
  }
}

std::vector<NamedState> HeldAverage::states() {
  std::vector<NamedState> all = {{"updates", updates_}};
  for (size_t row = 0; row < average_.size(); ++row) all.push_back({parameters_[row].name, average_[row]});
  return all;
}

}  // namespace welkin::train
