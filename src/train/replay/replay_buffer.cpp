// SPDX-License-Identifier: Apache-2.0
#include "train/replay/replay_buffer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace welkin::train {
namespace {

constexpr int64_t kNoSample = -1;

// What is shown of a prediction that holds a value that is no number: the target, sample by sample.
at::Tensor sound(const SampleShard& shard, const at::Tensor& prediction, const at::Tensor& target) {
  std::vector<int64_t> sizes(static_cast<size_t>(prediction.dim()), 1);
  sizes.front() = prediction.size(0);
  return at::where(shard.nonfinite(prediction).eq(0).view(sizes), prediction.to(target.scalar_type()), target);
}

}  // namespace

ReplayBuffer::ReplayBuffer(const data::Dataset& dataset, data::ReplayPlan plan, const config::RunConfig& config,
                           ReplayLanes lanes, SampleShard shard, c10::Device device)
    : dataset_(dataset),
      plan_(std::move(plan)),
      feed_(dataset.spec(), config, device),
      lanes_(lanes),
      shard_(std::move(shard)),
      device_(device) {
  feed_.check_next(dataset.spec(), config);
  std::vector<int64_t> shape = whole_shape();
  if (const auto region = shard_.region()) std::copy_n(region->extent.begin(), shape.size() - 1, shape.begin() + 1);
  shape.insert(shape.begin(), {plan_.slots(), lanes_.count});
  states_ = at::empty(shape, at::TensorOptions(at::kFloat).pinned_memory(device.is_cuda()));
  samples_ = at::full({plan_.slots(), lanes_.count}, kNoSample, at::kLong);
}

data::ReplayChoice ReplayBuffer::choice(const data::Batch& batch, int64_t sample) const {
  return plan_.at(batch.epoch, batch.first_position + sample);
}

int64_t* ReplayBuffer::holder(int64_t slot, int64_t lane) const {
  return samples_.mutable_data_ptr<int64_t>() + slot * lanes_.count + lane - lanes_.first;
}

// Undefined where the input is that of the data.
at::Tensor ReplayBuffer::state_of(const data::Batch& batch, int64_t sample) const {
  const data::ReplayChoice wanted = choice(batch, sample);
  const int64_t lane = plan_.lane_of(batch.first_position + sample);
  const bool is_there = *holder(wanted.slot, lane) == batch.indices[static_cast<size_t>(sample)];
  if (wanted.steps == 0 || !is_there) return {};
  return states_[wanted.slot][lane - lanes_.first].unsqueeze(0).to(device_, /*non_blocking=*/true);
}

void ReplayBuffer::feed(const data::Batch& batch) const {
  const at::NoGradGuard no_grad;
  for (int64_t i = 0; i < batch.input.size(0); ++i) {
    const at::Tensor input = batch.input.narrow(0, i, 1);
    if (const at::Tensor state = state_of(batch, i); state.defined()) input.copy_(feed_.with_known_of(state, input));
  }
}

void ReplayBuffer::keep(const data::Batch& batch, const at::Tensor& prediction) {
  const at::NoGradGuard no_grad;
  const at::Tensor known = feed_.known_of(batch.input);
  const at::Tensor next = feed_.next(batch.input, sound(shard_, prediction.detach(), batch.target), known, batch.target);
  for (int64_t i = 0; i < next.size(0); ++i) {
    const int64_t slot = choice(batch, i).slot, lane = plan_.lane_of(batch.first_position + i);
    states_[slot][lane - lanes_.first].copy_(next[i], /*non_blocking=*/true);
    *holder(slot, lane) = dataset_.following(batch.indices[static_cast<size_t>(i)]).value_or(kNoSample);
  }
}

void ReplayBuffer::sync() const {
  if (device_.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device_.type());
  guard.synchronizeStream(guard.getStream(device_));
}

void ReplayBuffer::clear() const { samples_.fill_(kNoSample); }

}  // namespace welkin::train
