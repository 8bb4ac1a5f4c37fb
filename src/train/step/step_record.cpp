// SPDX-License-Identifier: Apache-2.0
#include "train/step/step_record.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/zeros.h>

namespace welkin::train {

EpochMeter::EpochMeter(c10::Device device) {
  const auto zero = [&] { return at::zeros({}, at::TensorOptions(at::kDouble).device(device)); };
  loss_sum_ = zero();
  weight_ = zero();
  skipped_ = zero();
}

void EpochMeter::add(const StepRecord& record) {
  at::Tensor weight = at::isfinite(record.loss).to(at::kDouble) * record.num_samples;
  if (record.spike.defined()) weight = weight * (1 - record.spike * record.gradient.found_inf.gt(0));
  loss_sum_.add_(at::nan_to_num(record.loss.to(at::kDouble), 0, 0, 0) * weight);
  weight_.add_(weight);
  skipped_.add_(record.gradient.found_inf);
}

void EpochMeter::clear() {
  loss_sum_.zero_();
  weight_.zero_();
  skipped_.zero_();
}

double EpochMeter::mean_loss() const { return loss_sum_.item<double>() / weight_.item<double>(); }

int64_t EpochMeter::skipped_steps() const { return static_cast<int64_t>(skipped_.item<double>()); }

std::vector<NamedState> EpochMeter::states() {
  return {{"epoch_loss_sum", loss_sum_}, {"epoch_loss_weight", weight_}, {"epoch_skipped", skipped_}};
}

}  // namespace welkin::train
