// SPDX-License-Identifier: Apache-2.0
// Reading threads and the ring of host buffers that they fill. Every batch's content is a function of its place in the run, so
// any number of threads gives the same batches in the same order. One owner takes batches; the threads belong to the ring.
#pragma once

#include <ATen/core/Tensor.h>

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "data/dataset.h"
#include "data/epoch_plan.h"
#include "data/sampler.h"

namespace welkin::data {

struct BatchRingOptions {
  int64_t num_workers = 0;  // 0: take() reads
  int64_t num_slots = 3;    // buffers, at least 1
  int64_t capacity = 1;     // samples per buffer
  bool normalise = true;    // on the reading thread; else the values stay as stored
  bool pinned = false;      // page-locked buffers (needs CUDA)
  Region region;            // of every sample
};

// A batch in host memory. `input` and `target` have the buffer's whole capacity in the first dim.
struct HostBatch {
  MicroBatch place;
  std::vector<int64_t> indices;  // sample indices, size place.count
  at::Tensor input, target;      // float32
};

class BatchRing {
 public:
  BatchRing(const Dataset& dataset, const Sampler& sampler, const EpochPlan& plan, const BatchRingOptions& options);
  ~BatchRing();
  BatchRing(const BatchRing&) = delete;
  BatchRing& operator=(const BatchRing&) = delete;

  // The next batch, waiting for it. Rethrows what reading it threw (of several, the first sample's), now and on every later call.
  const HostBatch& take();
  bool ready() const;  // take() would not wait
  // Frees the oldest taken batch for refilling.
  void release();
  // Continues at (epoch, step): what was read ahead is dropped, every taken batch is released.
  void seek(int64_t epoch, int64_t step);

 private:
  struct Slot {
    HostBatch batch;
    int64_t next_sample = 0;  // not yet given to a thread
    int64_t unfinished = 0;
    std::exception_ptr error;
    int64_t error_sample = 0;
  };

  Slot& slot(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }
  const Slot& slot(int64_t number) const { return slots_[static_cast<size_t>(number) % slots_.size()]; }
  bool is_complete(int64_t number) const { return number < planned_ && slot(number).unfinished == 0; }
  void work(const std::stop_token& stop);
  bool try_work(std::unique_lock<std::mutex>& lock);
  bool find_work();
  void plan_slot();
  void read_sample(const Slot& target, int64_t sample) const;

  const Dataset& dataset_;
  const Sampler sampler_;
  const EpochPlan plan_;
  const BatchRingOptions options_;

  mutable std::mutex mutex_;
  std::condition_variable_any work_;  // a slot became free, or the ring moved
  std::condition_variable_any done_;  // a slot became complete, or a thread finished a sample
  std::vector<Slot> slots_;
  // Batches are numbered from the start or the last seek: [released_, taken_) are in the owner's hands, [taken_, planned_) are
  // being read, [reading_, planned_) may still have samples to give out.
  int64_t released_ = 0, taken_ = 0, reading_ = 0, planned_ = 0;
  MicroBatch next_;  // the place of the batch that is planned next
  int64_t in_flight_ = 0;
  bool paused_ = false;
  std::vector<std::jthread> threads_;  // last: the threads use all of the above
};

}  // namespace welkin::data
