// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline/pipeline.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "data/pipeline/batch_ring.h"
#include "data/pipeline/device_resident.h"
#include "data/pipeline/device_stage.h"
#include "data/sample/epoch_plan.h"

namespace welkin::data {
namespace {

// The batch that next() returned last and the one before it: their tensors are valid on the CPU, where they are the buffers.
constexpr size_t kHeldBatches = 2;

EpochPlanOptions epoch_plan_of(const Sampler& sampler, const PipelineOptions& options) {
  return {.num_samples = sampler.size(),
          .global_batch = options.global_batch,
          .micro_batch = options.micro_batch,
          .shard = options.shard,
          .num_shards = options.num_shards,
          .drop_last = options.drop_last,
          .shard_rule = options.shard_rule};
}

BatchRingOptions ring_options_of(const Dataset& dataset, const PipelineOptions& options) {
  const int64_t share = (options.global_batch + options.num_shards - 1) / options.num_shards;
  const int64_t ahead = options.num_workers == 0 ? 1 : std::max<int64_t>(1, options.prefetch_depth);
  return {.num_workers = options.num_workers,
          .num_slots = ahead + static_cast<int64_t>(kHeldBatches),
          .capacity = std::min(options.micro_batch, share),
          .normalise = options.device.is_cpu(),
          .turn = options.device.is_cpu() || options.region.has_value(),
          .pinned = options.device.is_cuda() && options.pin_memory,
          .persistent = options.persistent_workers,
          .tracer = options.tracer,
          .region = options.region.value_or(whole(dataset.spec())),
          .rules = {.bad_sample = options.rules.bad_sample, .nan = nan_policy_for(dataset.spec(), options.rules.nan)},
          .stall_seconds = options.stall_seconds,
          .report = options.report,
          .stalled = options.stalled};
}

Batch batch_at(const MicroBatch& place) {
  Batch batch;
  batch.epoch = place.epoch;
  batch.step = place.step;
  batch.micro = place.micro;
  batch.num_micro = place.num_micro;
  batch.step_samples = place.step_samples;
  batch.first_position = place.first_position;
  return batch;
}

}  // namespace

struct Pipeline::Impl {
  // Batches from data that a device holds.
  struct ResidentBatches {
    ResidentBatches(const Dataset& all, const Sampler& order, const PipelineOptions& options)
        : dataset(all),
          sampler(order),
          region(options.region.value_or(whole(all.spec()))),
          device(options.device),
          values(all, options.device,
                 {.nan = nan_policy_for(all.spec(), options.rules.nan),
                  .report = options.report,
                  .stall_seconds = options.stall_seconds,
                  .stalled = options.stalled}) {}

    Batch cut(const MicroBatch& place) {
      Batch batch = batch_at(place);
      std::vector<SamplePlan> plans;
      for (int64_t i = 0; i < place.count; ++i) {
        const SampleKey key = sampler.at(place.epoch, place.first_position + i);
        batch.indices.push_back(key.index);
        plans.push_back(dataset.plan(key, region));
      }
      DeviceResident::Arrays arrays = values.cut(plans);
      batch.input = std::move(arrays.input);
      batch.target = std::move(arrays.target);
      batch.sample = sample_positions(place, device);
      samples_cut += place.count;
      return batch;
    }

    const Dataset& dataset;
    Sampler sampler;
    Region region;
    c10::Device device;
    DeviceResident values;
    int64_t samples_cut = 0;
  };

  Impl(const Dataset& dataset, const Sampler& sampler, const PipelineOptions& options)
      : shares(epoch_plan_of(sampler, options)),
        plan(shares),
        order(sampler),
        stage(dataset.spec(), {.device = options.device,
                               .non_blocking = options.non_blocking,
                               .holes = nan_policy_for(dataset.spec(), options.rules.nan) == NanPolicy::Hole}),
        agree(options.agree),
        next_place(plan.at(0, 0, 0)) {
    if (options.resident) {
      resident.emplace(dataset, sampler, options);
    } else {
      ring.emplace(dataset, sampler, plan, ring_options_of(dataset, options));
    }
  }

  // A batch in the hands of the device or of the caller, oldest first in `held`.
  struct Held {
    const HostBatch* host = nullptr;
    DeviceBatch device;
  };

  Held start_next();
  void settle(Held& taken);
  void release_oldest();
  Batch to_batch(const Held& taken) const;

  EpochPlanOptions shares;
  EpochPlan plan;
  Sampler order;
  std::optional<BatchRing> ring;  // one of the two
  std::optional<ResidentBatches> resident;
  DeviceStage stage;
  std::function<std::vector<int64_t>(const std::vector<int64_t>&)> agree;
  MicroBatch next_place;      // of the next batch that next() returns
  std::optional<Held> ahead;  // its copy to the device has been started
  std::deque<Held> held;
};

Pipeline::Impl::Held Pipeline::Impl::start_next() {
  const HostBatch& host = ring->take();
  return {&host, stage.start(host)};
}

// Ranks that read the same samples skip the same ones. They agree here and not where a batch is taken from the ring: the time
// of that differs between ranks, but the order of collectives must not.
void Pipeline::Impl::settle(Held& taken) {
  if (!agree || taken.host->place.count == 0) return;
  bool changed = false;
  for (;;) {
    const std::vector<int64_t> most = agree(taken.host->skips);
    if (most.empty()) break;
    DeviceStage::wait(taken.device);
    ring->skip_more(most);
    changed = true;
  }
  if (changed) taken.device = stage.start(*taken.host);
}

void Pipeline::Impl::release_oldest() {
  DeviceStage::wait(held.front().device);
  held.pop_front();
  ring->release();
}

Batch Pipeline::Impl::to_batch(const Held& taken) const {
  Batch batch = batch_at(taken.host->place);
  batch.input = taken.device.input;
  batch.target = taken.device.target;
  batch.sample = taken.device.sample;
  batch.indices = taken.host->indices;
  return batch;
}

Pipeline::Pipeline(const Dataset& dataset, Sampler sampler, PipelineOptions options) {
  WELKIN_CHECK(sampler.size() <= dataset.size(), "a sampler of more samples than the data set has");
  impl_ = std::make_unique<Impl>(dataset, sampler, options);
}

Pipeline::~Pipeline() = default;

int64_t Pipeline::steps_per_epoch() const { return impl_->plan.steps_per_epoch(); }
uint64_t Pipeline::buffer_bytes() const { return impl_->ring ? impl_->ring->buffer_bytes() : 0; }
int64_t Pipeline::num_buffers() const { return impl_->ring ? impl_->ring->num_buffers() : 0; }
int64_t Pipeline::samples_read() const { return impl_->ring ? impl_->ring->samples_read() : impl_->resident->samples_cut; }
uint64_t Pipeline::resident_bytes() const { return impl_->resident ? impl_->resident->values.bytes() : 0; }

Batch Pipeline::next() {
  Impl& self = *impl_;
  if (self.resident) {
    const MicroBatch place = std::exchange(self.next_place, self.plan.after(self.next_place));
    return self.resident->cut(place);
  }
  // The batch before last is freed before the next is taken: its tensors are no longer valid.
  while (self.held.size() >= kHeldBatches) self.release_oldest();
  Impl::Held taken = self.ahead ? std::move(*self.ahead) : self.start_next();
  self.ahead.reset();
  self.settle(taken);
  self.stage.join(taken.device);
  Batch batch = self.to_batch(taken);
  self.held.push_back(std::move(taken));
  self.next_place = self.plan.after(self.held.back().host->place);
  if (!self.stage.is_host() && self.ring->ready()) self.ahead = self.start_next();
  return batch;
}

PipelineState Pipeline::state() const {
  WELKIN_CHECK(impl_->next_place.micro == 0, "the state of a pipeline in the middle of a step");
  return {impl_->next_place.epoch, impl_->next_place.step};
}

namespace {

std::vector<SampleKey> keys_in(const EpochPlan& plan, const Sampler& order, const PipelineState& step) {
  std::vector<SampleKey> keys;
  for (int64_t micro = 0, num_micro = 1; micro < num_micro; ++micro) {
    const MicroBatch place = plan.at(step.epoch, step.step, micro);
    num_micro = place.num_micro;
    for (int64_t i = 0; i < place.count; ++i) keys.push_back(order.at(place.epoch, place.first_position + i));
  }
  return keys;
}

}  // namespace

std::vector<SampleKey> Pipeline::keys_of(const PipelineState& step) const { return keys_in(impl_->plan, impl_->order, step); }

// Order and shares are functions of the place, so that no rank need be asked.
std::vector<int64_t> Pipeline::samples_of_all(const PipelineState& step) const {
  std::vector<int64_t> indices;
  EpochPlanOptions share = impl_->shares;
  for (share.shard = 0; share.shard < share.num_shards; ++share.shard) {
    for (const SampleKey& key : keys_in(EpochPlan(share), impl_->order, step)) indices.push_back(key.index);
  }
  return indices;
}

void Pipeline::resume(const PipelineState& state) {
  Impl& self = *impl_;
  if (state.epoch < 0 || state.step < 0 || state.step >= steps_per_epoch()) {
    throw CheckpointError("data",
                          cat("a position outside of the epoch: epoch=", state.epoch, ", step=", state.step,
                              ", steps_per_epoch=", steps_per_epoch()),
                          "Resume with the data and the batch size of the checkpoint");
  }
  if (self.ahead) DeviceStage::wait(self.ahead->device);
  for (const Impl::Held& held : self.held) DeviceStage::wait(held.device);
  self.ahead.reset();
  self.held.clear();
  if (self.ring) self.ring->seek(state.epoch, state.step);
  self.next_place = self.plan.at(state.epoch, state.step, 0);
}

}  // namespace welkin::data
