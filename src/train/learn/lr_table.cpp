// SPDX-License-Identifier: Apache-2.0
#include "train/learn/lr_table.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>

namespace welkin::train {

LrTable::LrTable(const LrSchedule& schedule, int64_t total_steps, c10::Device device, config::RateRule count)
    : updates_(at::zeros({}, at::TensorOptions(at::kLong).device(device))), count_(count) {
  const at::Tensor rates = at::empty({total_steps + 1}, at::kDouble);
  for (int64_t step = 0; step <= total_steps; ++step) rates.data_ptr<double>()[step] = schedule.rate(step);
  rates_ = rates.to(device, device.is_cpu() ? at::kDouble : at::kFloat);
}

// Clamped: a resumed run may already be longer than its new length.
at::Tensor LrTable::current() const {
  return rates_.index_select(0, updates_.clamp_max(rates_.size(0) - 1).view({1})).squeeze(0);
}

void LrTable::advance(const at::Tensor& found_inf) {
  if (count_ == config::RateRule::Iterations) {
    updates_.add_(1);
  } else {
    updates_.add_((1 - found_inf).to(at::kLong));
  }
}

}  // namespace welkin::train
