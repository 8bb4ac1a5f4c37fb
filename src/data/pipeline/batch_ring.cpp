// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline/batch_ring.h"

#include <ATen/ops/empty.h>
#include <pthread.h>

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "core/text.h"

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

std::vector<ChannelOp> ops_of(const ArrayTransform& transform, const ArraySpec& spec, const char* name) {
  if (transform.is_identity()) return {};
  return channel_ops(transform, spec.shape.at(0), name);
}

void transform_values(const std::vector<ChannelOp>& ops, std::span<float> values) {
  if (ops.empty()) return;
  const auto plane = static_cast<int64_t>(values.size() / ops.size());
  for (size_t c = 0; c < ops.size(); ++c) apply(ops[c], values.data() + static_cast<int64_t>(c) * plane, plane);
}

}  // namespace

BatchRing::BatchRing(const Dataset& dataset, const Sampler& sampler, const EpochPlan& plan, const BatchRingOptions& options)
    : dataset_(dataset),
      sampler_(sampler),
      plan_(plan),
      options_(options),
      input_ops_(ops_of(input_transform(dataset.spec()), dataset.spec().input, "input")),
      target_ops_(ops_of(target_transform(dataset.spec()), dataset.spec().target, "target")),
      next_(plan.at(0, 0, 0)) {
  const SampleSpec& spec = dataset.spec();
  slots_.resize(static_cast<size_t>(options.num_slots));
  for (Slot& slot : slots_) {
    slot.batch.input = make_batch_buffer(options.capacity, spec.input, options.region, options.pinned);
    slot.batch.target = make_batch_buffer(options.capacity, spec.target, options.region, options.pinned);
  }
  const int64_t readers = std::max<int64_t>(1, options.num_workers);
  for (int64_t i = 0; i < readers; ++i) watches_.push_back(std::make_unique<ReadWatch>());
  start_threads();
}

BatchRing::~BatchRing() = default;

void BatchRing::start_threads() {
  if (options_.num_workers == 0) {
    if (options_.stall_seconds > 0 && options_.stalled) {
      owner_watch_.emplace(watches_, 1, options_.stall_seconds, options_.stalled);
    }
    return;
  }
  for (const auto& watch : watches_) {
    threads_.emplace_back([this, &watch](const std::stop_token& stop) { work(stop, *watch); });
  }
}

void BatchRing::stop_threads() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();  // joins
}

uint64_t BatchRing::buffer_bytes() const {
  uint64_t bytes = 0;
  for (const Slot& slot : slots_) bytes += slot.batch.input.nbytes() + slot.batch.target.nbytes();
  return bytes;
}

const HostBatch& BatchRing::take() {
  std::optional<WatchThisThread> watched;
  if (options_.num_workers == 0) watched.emplace(*watches_.front());
  std::unique_lock lock(mutex_);
  WELKIN_CHECK(taken_ - released_ < options_.num_slots, "every batch of the ring is in use");
  while (!is_complete(taken_)) {
    if (options_.num_workers == 0) {
      try_work(lock);
    } else {
      wait_for_readers(lock);
    }
  }
  Slot& next = slot(taken_);
  const std::vector<std::string> notes = std::exchange(next.notes, {});
  const MaskedValues masked = std::exchange(next.masked, {});
  const std::exception_ptr error = next.error;
  if (!error) ++taken_;
  lock.unlock();
  say(notes);
  say_masked(masked, next.batch.place);
  if (error) std::rethrow_exception(error);
  return next.batch;
}

// Reports the first place at once, and one line where the epoch ends.
void BatchRing::say_masked(const MaskedValues& masked, const MicroBatch& place) {
  if (!options_.report || options_.rules.nan != NanPolicy::Mask) return;
  if (masked.values > 0 && !std::exchange(has_said_masked_, true)) {
    options_.report(cat(masked.first, ", masked with the channel's mean; what follows is counted until the epoch ends"));
  }
  masked_.add(masked);
  if (masked_.values == 0 || plan_.after(place).epoch == place.epoch) return;
  options_.report(cat("masked with the channels' means in epoch ", place.epoch + 1, ": values=", masked_.values,
                      ", samples=", masked_.samples, ", channels=[", join(masked_.channels, ", "), "]"));
  masked_ = {};
}

void BatchRing::say(const std::vector<std::string>& notes) const {
  if (!options_.report) return;
  for (const std::string& note : notes) options_.report(note);
}

void BatchRing::skip_more(const std::vector<int64_t>& skips) {
  WELKIN_CHECK(released_ < taken_, "no batch was taken");
  Slot& taken = slot(taken_ - 1);  // it is not refilled before it is released
  WELKIN_CHECK(skips.size() == taken.batch.skips.size(), "one number per sample of the batch");
  for (size_t i = 0; i < skips.size(); ++i) {
    if (skips[i] <= taken.batch.skips[i]) continue;
    say({cat("a sample was skipped: index=", taken.batch.indices[i], ", reason=another rank could not read it")});
    SampleOutcome outcome;
    try {
      read_sample(taken, static_cast<int64_t>(i), skips[i], outcome);
    } catch (...) {
      say(outcome.notes);  // the samples skipped before it gave up
      throw;
    }
    taken.batch.indices[i] = outcome.index;
    taken.batch.skips[i] = outcome.skips;
    taken.batch.orientations[i] = outcome.orientation;
    masked_.add(outcome.masked);
    say(outcome.notes);
  }
}

// Waits until something happened, or the stalled reads are to be reported.
void BatchRing::wait_for_readers(std::unique_lock<std::mutex>& lock) {
  // Without persistent threads, the threads end with an epoch, and new ones start with the next.
  if (!paused_ && !reads_across_epochs() && taken_ == planned_ && next_.epoch != epoch_) {
    epoch_ = next_.epoch;
    lock.unlock();
    stop_threads();
    start_threads();
    lock.lock();
    return;
  }
  if (options_.stall_seconds <= 0) return done_.wait(lock);
  const double wait_seconds = std::max(options_.stall_seconds, reported_age_);
  if (done_.wait_for(lock, std::chrono::duration<double>(wait_seconds)) == std::cv_status::no_timeout) {
    reported_age_ = 0;
    return;
  }
  const std::string text = stalled_reads(watches_, static_cast<int64_t>(watches_.size()), options_.stall_seconds);
  const auto& report = options_.stalled ? options_.stalled : options_.report;
  if (text.empty() || !report) return;
  lock.unlock();
  report(text);
  lock.lock();
  reported_age_ += wait_seconds;
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
  while (in_flight_ > 0) wait_for_readers(lock);
  next_ = plan_.at(epoch, step, 0);
  epoch_ = epoch;
  masked_ = {};
  released_ = taken_ = reading_ = planned_ = 0;
  paused_ = false;
  work_.notify_all();
}

void BatchRing::work(const std::stop_token& stop, ReadWatch& watch) {
  pthread_setname_np(pthread_self(), "welkin-read");
  const WatchThisThread watched(watch);
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (!try_work(lock)) work_.wait(lock, stop, [this] { return find_work(); });
  }
}

// Makes slot(reading_) the first batch with a sample to give out, planning one where a buffer is free.
bool BatchRing::find_work() {
  if (paused_) return false;
  const auto may_plan = [this] {
    return planned_ - released_ < options_.num_slots && (reads_across_epochs() || next_.epoch == epoch_);
  };
  while (reading_ < planned_ && slot(reading_).next_sample == slot(reading_).batch.place.count) ++reading_;
  while (reading_ == planned_ && may_plan()) {
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
  planned.batch.skips.assign(static_cast<size_t>(next_.count), 0);
  planned.batch.orientations.assign(static_cast<size_t>(next_.count), 0);
  planned.next_sample = 0;
  planned.unfinished = next_.count;
  planned.error = nullptr;
  planned.notes.clear();
  planned.masked = {};
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
  SampleOutcome outcome;
  try {
    read_sample(target, sample, 0, outcome);
    samples_read_.fetch_add(1, std::memory_order_relaxed);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  --in_flight_;
  if (!error) {
    target.batch.indices[static_cast<size_t>(sample)] = outcome.index;
    target.batch.skips[static_cast<size_t>(sample)] = outcome.skips;
    target.batch.orientations[static_cast<size_t>(sample)] = outcome.orientation;
  }
  for (std::string& note : outcome.notes) target.notes.push_back(std::move(note));
  target.masked.add(outcome.masked);
  if (error && (!target.error || sample < target.error_sample)) {
    target.error = error;
    target.error_sample = sample;
  }
  if (--target.unfinished == 0 || paused_) done_.notify_all();
  return true;
}

void BatchRing::read_sample(const Slot& target, int64_t sample, int64_t passed, SampleOutcome& outcome) const {
  const MicroBatch& place = target.batch.place;
  const SampleKey key = sampler_.at(place.epoch, place.first_position + sample);
  const observe::Span span(options_.tracer, "read");
  const bool fused = options_.normalise && dataset_.transforms();
  const SampleView view{sample_of(target.batch.input, sample), sample_of(target.batch.target, sample), fused,
                        options_.turn || !dataset_.turns()};
  read_checked(dataset_, key, options_.region, options_.rules, view, outcome, passed);
  if (!options_.normalise) return;
  if (!fused) {
    transform_values(input_ops_, view.input);
    transform_values(target_ops_, view.target);
  }
  const SampleSpec& spec = dataset_.spec();
  if (options_.rules.nan == NanPolicy::Hole) fill_holes(view.input, spec.input.shape.at(0), spec.input_fill);
}

}  // namespace welkin::data
