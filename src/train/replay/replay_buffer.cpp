// SPDX-License-Identifier: Apache-2.0
#include "train/replay/replay_buffer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "parallel/comm/collectives.h"

namespace welkin::train {
namespace {

constexpr int64_t kNoSample = -1;

// Replaces a prediction that holds a non-finite value by the target, sample by sample.
at::Tensor sound(const SampleShard& shard, const at::Tensor& prediction, const at::Tensor& target) {
  std::vector<int64_t> sizes(static_cast<size_t>(prediction.dim()), 1);
  sizes.front() = prediction.size(0);
  return at::where(shard.nonfinite(prediction).eq(0).view(sizes), prediction.to(target.scalar_type()), target);
}

}  // namespace

ReplayBuffer::ReplayBuffer(const data::Dataset& dataset, data::ReplayPlan plan, const config::RunConfig& config,
                           ReplayLanes lanes, SampleShard shard, c10::Device device, ReplayStages stages)
    : dataset_(dataset),
      plan_(std::move(plan)),
      feed_(dataset.spec(), config, device),
      lanes_(lanes),
      shard_(std::move(shard)),
      device_(device),
      stages_(std::move(stages)) {
  feed_.check_next(dataset.spec(), config);
  const int64_t slots = holds_states() ? plan_.slots() : 0;
  states_ = at::empty(shape_of({slots, lanes_.count}), at::TensorOptions(at::kFloat).pinned_memory(device.is_cuda()));
  samples_ = at::full({slots, lanes_.count}, kNoSample, at::kLong);
}

bool ReplayBuffer::reads_states() const {
  return !is_in_pipeline() || std::ranges::find(stages_.readers, stages_.ranks.group_rank()) != stages_.readers.end();
}

// (places..., C, points that are read)
std::vector<int64_t> ReplayBuffer::shape_of(std::vector<int64_t> places) const {
  std::vector<int64_t> shape = whole_shape();
  if (const auto region = shard_.region()) std::copy_n(region->extent.begin(), shape.size() - 1, shape.begin() + 1);
  places.insert(places.end(), shape.begin(), shape.end());
  return places;
}

data::ReplayChoice ReplayBuffer::choice(const data::Batch& batch, int64_t sample) const {
  return plan_.at(batch.epoch, batch.first_position + sample);
}

int64_t ReplayBuffer::lane_of(const data::Batch& batch, int64_t sample) const {
  return plan_.lane_of(batch.first_position + sample) - lanes_.first;
}

ReplayBuffer::Place ReplayBuffer::place_of(const data::Batch& batch, int64_t sample) const {
  return {.slot = choice(batch, sample).slot,
          .lane = lane_of(batch, sample),
          .following = dataset_.following(batch.indices[static_cast<size_t>(sample)]).value_or(kNoSample)};
}

int64_t& ReplayBuffer::holder(int64_t slot, int64_t lane) const {
  return samples_.mutable_data_ptr<int64_t>()[slot * lanes_.count + lane];
}

void ReplayBuffer::store(const Place& place, const at::Tensor& state) {
  states_[place.slot][place.lane].copy_(state, /*non_blocking=*/true);
  holder(place.slot, place.lane) = place.following;
}

// Undefined if the sample takes the input of the data.
at::Tensor ReplayBuffer::state_of(const data::Batch& batch, int64_t sample) const {
  const data::ReplayChoice wanted = choice(batch, sample);
  const int64_t lane = lane_of(batch, sample);
  const bool is_there = holder(wanted.slot, lane) == batch.indices[static_cast<size_t>(sample)];
  if (wanted.steps == 0 || !is_there) return {};
  return states_[wanted.slot][lane].unsqueeze(0).to(device_, /*non_blocking=*/true);
}

void ReplayBuffer::feed(const data::Batch& batch) {
  if (!holds_states()) return;
  const at::NoGradGuard no_grad;
  for (int64_t i = 0; i < batch.input.size(0); ++i) {
    const at::Tensor input = batch.input.narrow(0, i, 1);
    if (const at::Tensor state = state_of(batch, i); state.defined()) input.copy_(feed_.with_known_of(state, input));
    if (!makes_states()) awaited_.push_back(place_of(batch, i));
  }
}

void ReplayBuffer::keep(const data::Batch& batch, const at::Tensor& prediction) {
  const at::NoGradGuard no_grad;
  const at::Tensor known = feed_.known_of(batch.input);
  const at::Tensor next = feed_.next(batch.input, sound(shard_, prediction.detach(), batch.target), known, batch.target);
  if (is_in_pipeline() && !made_.defined()) made_ = at::zeros(shape_of({lanes_.count}), next.options());
  for (int64_t i = 0; i < next.size(0); ++i) {
    const Place place = place_of(batch, i);
    store(place, next[i]);
    if (made_.defined()) made_[place.lane].copy_(next[i]);
  }
}

void ReplayBuffer::end_step() {
  if (!is_in_pipeline()) return;
  makes_states() ? send_states() : receive_states();
}

void ReplayBuffer::send_states() {
  std::vector<parallel::Transfer> transfers;
  for (const int64_t reader : stages_.readers) {
    if (reader != stages_.ranks.group_rank()) transfers.push_back(parallel::start_send(stages_.ranks, made_, reader));
  }
  for (parallel::Transfer& transfer : transfers) transfer.wait();
}

void ReplayBuffer::receive_states() {
  if (!reads_states()) return;
  const at::Tensor made = at::empty(shape_of({lanes_.count}), at::TensorOptions(at::kFloat).device(device_));
  parallel::start_receive(stages_.ranks, made, stages_.ranks.size() - 1).wait();
  for (const Place& place : std::exchange(awaited_, {})) store(place, made[place.lane]);
}

void ReplayBuffer::sync() const {
  if (device_.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device_.type());
  guard.synchronizeStream(guard.getStream(device_));
}

void ReplayBuffer::clear() const { samples_.fill_(kNoSample); }

}  // namespace welkin::train
