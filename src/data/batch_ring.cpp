// SPDX-License-Identifier: Apache-2.0
#include "data/batch_ring.h"

#include <ATen/ops/empty.h>
#include <pthread.h>

#include <algorithm>

#include "core/error.h"
#include "data/channel_statistics.h"

namespace welkin::data {
namespace {

at::Tensor make_batch_buffer(int64_t capacity, const ArraySpec& spec, const Region& region, bool pinned) {
  std::vector<int64_t> shape{capacity, spec.shape.at(0)};
  for (size_t d = 1; d < spec.shape.size(); ++d) shape.push_back(region.extent[d - 1]);
  return at::empty(shape, at::TensorOptions(at::kFloat).pinned_memory(pinned));
}

std::span<float> sample_of(const at::Tensor& buffer, int64_t sample) {
  const int64_t size = buffer.numel() / buffer.size(0);
  return {static_cast<float*>(buffer.data_ptr()) + sample * size, static_cast<size_t>(size)};
}

}  // namespace

BatchRing::BatchRing(const Dataset& dataset, const Sampler& sampler, const EpochPlan& plan, const BatchRingOptions& options)
    : dataset_(dataset), sampler_(sampler), plan_(plan), options_(options), next_(plan.at(0, 0, 0)) {
  const SampleSpec& spec = dataset.spec();
  slots_.resize(static_cast<size_t>(options.num_slots));
  for (Slot& slot : slots_) {
    slot.batch.input = make_batch_buffer(options.capacity, spec.input, options.region, options.pinned);
    slot.batch.target = make_batch_buffer(options.capacity, spec.target, options.region, options.pinned);
  }
  for (int64_t i = 0; i < options.num_workers; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  }
}

BatchRing::~BatchRing() = default;

const HostBatch& BatchRing::take() {
  std::unique_lock lock(mutex_);
  WELKIN_CHECK(taken_ - released_ < options_.num_slots, "every batch of the ring is in use");
  while (!is_complete(taken_)) {
    if (options_.num_workers == 0) {
      try_work(lock);
    } else {
      done_.wait(lock);
    }
  }
  const Slot& next = slot(taken_);
  if (next.error) std::rethrow_exception(next.error);
  ++taken_;
  return next.batch;
}

bool BatchRing::ready() const {
  const std::lock_guard lock(mutex_);
  return is_complete(taken_) && !slot(taken_).error;
}

void BatchRing::release() {
  const std::lock_guard lock(mutex_);
  WELKIN_CHECK(released_ < taken_, "no batch to release");
  ++released_;
  work_.notify_all();
}

void BatchRing::seek(int64_t epoch, int64_t step) {
  std::unique_lock lock(mutex_);
  paused_ = true;
  done_.wait(lock, [this] { return in_flight_ == 0; });
  next_ = plan_.at(epoch, step, 0);
  released_ = taken_ = reading_ = planned_ = 0;
  paused_ = false;
  work_.notify_all();
}

void BatchRing::work(const std::stop_token& stop) {
  pthread_setname_np(pthread_self(), "welkin-read");
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (!try_work(lock)) work_.wait(lock, stop, [this] { return find_work(); });
  }
}

// Makes slot(reading_) the first batch with a sample to give out, planning one where a buffer is free.
bool BatchRing::find_work() {
  if (paused_) return false;
  while (reading_ < planned_ && slot(reading_).next_sample == slot(reading_).batch.place.count) ++reading_;
  while (reading_ == planned_ && planned_ - released_ < options_.num_slots) {
    plan_slot();
    if (slot(reading_).batch.place.count == 0) {
      ++reading_;
      done_.notify_all();
    }
  }
  return reading_ < planned_;
}

void BatchRing::plan_slot() {
  Slot& planned = slot(planned_++);
  planned.batch.place = next_;
  planned.batch.indices.assign(static_cast<size_t>(next_.count), 0);
  planned.next_sample = 0;
  planned.unfinished = next_.count;
  planned.error = nullptr;
  for (int64_t i = 0; i < next_.count; ++i) {
    planned.batch.indices[static_cast<size_t>(i)] = sampler_.at(next_.epoch, next_.first_position + i).index;
  }
  next_ = plan_.after(next_);
}

// Reads one sample with the lock released. False: nothing to do.
bool BatchRing::try_work(std::unique_lock<std::mutex>& lock) {
  if (!find_work()) return false;
  Slot& target = slot(reading_);
  const int64_t sample = target.next_sample++;
  ++in_flight_;
  lock.unlock();
  std::exception_ptr error;
  try {
    read_sample(target, sample);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  --in_flight_;
  if (error && (!target.error || sample < target.error_sample)) {
    target.error = error;
    target.error_sample = sample;
  }
  if (--target.unfinished == 0 || paused_) done_.notify_all();
  return true;
}

void BatchRing::read_sample(const Slot& target, int64_t sample) const {
  const MicroBatch& place = target.batch.place;
  const SampleKey key = sampler_.at(place.epoch, place.first_position + sample);
  const SampleView view{sample_of(target.batch.input, sample), sample_of(target.batch.target, sample)};
  dataset_.read(dataset_.plan(key, options_.region), view);
  if (!options_.normalise) return;
  const SampleSpec& spec = dataset_.spec();
  normalise(view.input, spec.input_mean, spec.input_std);
  normalise(view.target, spec.target_mean, spec.target_std);
}

}  // namespace welkin::data
