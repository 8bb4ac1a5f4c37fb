// SPDX-License-Identifier: Apache-2.0
#include "train/learn/spike_guard.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <limits>

namespace welkin::train {
namespace {

constexpr double kDeviations = 1.4826;   // standard deviation of a normal distribution per median absolute deviation
constexpr double kLeastRelative = 0.01;  // of the median: the losses of a few equal batches hardly differ

at::Tensor pair_of(const at::Tensor& loss, const at::Tensor& norm) {
  return at::stack({loss.detach().to(at::kDouble), norm.detach().to(at::kDouble)});
}

}  // namespace

SpikeGuard::SpikeGuard(const config::HealthConfig& config, c10::Device device) : config_(config) {
  const auto number = [&] { return at::zeros({}, at::TensorOptions(at::kLong).device(device)); };
  window_ =
      at::full({2, config.spike_window}, std::numeric_limits<double>::quiet_NaN(), at::TensorOptions(at::kDouble).device(device));
  count_ = number();
  in_a_row_ = number();
  lowered_ = number();
}

// (2) lower median of each row's numbers. It sorts, with NaN last: torch's median with index does not repeat on a GPU.
at::Tensor SpikeGuard::middle_of(const at::Tensor& rows) const {
  const at::Tensor known = count_.clamp_max(config_.spike_window);
  const at::Tensor middle = (known - 1).clamp_min(0).floor_divide(2);
  return std::get<0>(at::sort(rows, 1)).index_select(1, middle.view({1})).squeeze(1);
}

at::Tensor SpikeGuard::limits() const {
  const at::Tensor median = middle_of(window_);
  const at::Tensor deviation = middle_of((window_ - median.unsqueeze(1)).abs()) * kDeviations;
  return median + config_.spike_factor * at::maximum(deviation, kLeastRelative * median.abs());
}

at::Tensor SpikeGuard::judge(const at::Tensor& loss, const at::Tensor& norm) {
  const at::NoGradGuard no_grad;
  const at::Tensor is_high = pair_of(loss, norm).le(limits()).logical_not().any();
  at::Tensor spike = is_high.logical_and(count_.ge((config_.spike_window + 3) / 4));
  if (config_.on_spike == config::SpikeAction::Skip) spike = spike.logical_and(in_a_row_.lt(config_.spike_patience));
  return spike.to(at::kFloat);
}

void SpikeGuard::add(const at::Tensor& loss, const at::Tensor& norm, const at::Tensor& spike, const at::Tensor& skipped) {
  const at::NoGradGuard no_grad;
  const at::Tensor is_spike = spike.to(at::kLong), is_good = (1 - at::maximum(skipped, spike)).to(at::kLong);
  const bool gives_in = config_.on_spike == config::SpikeAction::Skip;
  if (gives_in) {
    const at::Tensor keeps = 1 - is_good * in_a_row_.ge(config_.spike_patience).to(at::kLong);
    count_.mul_(keeps);
    window_.copy_(at::where(keeps.to(at::kBool), window_, std::numeric_limits<double>::quiet_NaN()));
  }
  const at::Tensor slot = count_.remainder(config_.spike_window).view({1});
  const at::Tensor values = pair_of(loss, norm).unsqueeze(1);
  window_.index_copy_(1, slot, at::where(is_good.to(at::kBool), values, window_.index_select(1, slot)));
  count_.add_(is_good);
  in_a_row_.add_(1).mul_(is_spike);
  if (!skips()) return;
  lowered_.sub_((1 - skipped).to(at::kLong)).clamp_min_(0);
  lowered_.copy_(at::where(is_spike.to(at::kBool), config_.spike_lr_steps, lowered_));
}

int64_t SpikeGuard::in_a_row() const { return in_a_row_.item<int64_t>(); }

void SpikeGuard::forget_row() { in_a_row_.zero_(); }

at::Tensor SpikeGuard::lowered(const at::Tensor& rate) const {
  if (config_.spike_lr_steps == 0) return rate;
  return at::where(lowered_.gt(0), rate * config_.spike_lr_factor, rate);
}

std::vector<NamedState> SpikeGuard::states() {
  return {{"spike_window", window_}, {"spike_count", count_}, {"spikes_in_a_row", in_a_row_}, {"spike_lowered", lowered_}};
}

}  // namespace welkin::train
