// SPDX-License-Identifier: Apache-2.0
// Reading threads and the ring of host buffers that they fill. Every batch's content is a function of its place in the run, so
// any number of threads gives the same batches in the same order. One owner takes batches; the threads belong to the ring.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "data/pipeline/sample_check.h"
#include "data/pipeline/stall_watch.h"
#include "data/sample/dataset.h"
#include "data/sample/epoch_plan.h"
#include "data/sample/sampler.h"
#include "data/storage/read_watch.h"
#include "observe/timeline/span.h"

namespace welkin::data {

struct BatchRingOptions {
  int64_t num_workers = 0;  // 0: take() reads
  int64_t num_slots = 3;    // buffers, at least 1
  int64_t capacity = 1;     // samples per buffer
  bool normalise = true;    // on the reading thread; else the values stay as stored
  bool turn = true;         // on the reading thread; else samples stay as they lie in the file (whole samples only)
  bool pinned = false;      // page-locked buffers (needs CUDA)
  bool persistent = true;   // the threads live on at the end of an epoch and read ahead across it
  const observe::Tracer* tracer = nullptr;
  Region region{};           // of every sample
  SampleRules rules{};       // the policy for samples that cannot be read or hold NaN
  double stall_seconds = 0;  // a read that takes longer is reported, again whenever its age has doubled; 0: never
  std::function<void(const std::string&)> report{};   // reports skipped samples and NaN; called by take(); may be empty
  std::function<void(const std::string&)> stalled{};  // reports reads that hang; report() is called where it is empty,
  // unless take() reads itself: then a thread that watches it calls this.
};

// A batch in host memory. `input` and `target` have the buffer's whole capacity in the first dim.
struct HostBatch {
  MicroBatch place;
  std::vector<int64_t> indices;       // sample indices, size place.count; of the replacement where a bad sample was skipped
  std::vector<int64_t> skips;         // number of bad samples before it, size place.count
  std::vector<int32_t> orientations;  // size place.count; for the code that turns the samples
  at::Tensor input, target;           // float32
};

class BatchRing {
 public:
  BatchRing(const Dataset& dataset, const Sampler& sampler, const EpochPlan& plan, const BatchRingOptions& options);
  ~BatchRing();
  BatchRing(const BatchRing&) = delete;
  BatchRing& operator=(const BatchRing&) = delete;

  // Waits for the next batch. Rethrows the error of reading it (the first sample's of several), now and on every later call.
  const HostBatch& take();
  bool ready() const;  // take() would not wait
  // Reads those samples of the last batch taken again for which `skips` is larger than its own count: another
  // rank could not read them.
  void skip_more(const std::vector<int64_t>& skips);
  // Frees the oldest taken batch for refilling.
  void release();
  // Continues at (epoch, step): batches that were read ahead are dropped, every taken batch is released.
  void seek(int64_t epoch, int64_t step);

  int64_t samples_read() const { return samples_read_.load(std::memory_order_relaxed); }  // since the ring was made
  int64_t num_buffers() const { return options_.num_slots; }
  uint64_t buffer_bytes() const;  // of all slots

 private:
  struct Slot {
    HostBatch batch;
    int64_t next_sample = 0;  // not yet given to a thread
    int64_t unfinished = 0;
    std::exception_ptr error;
    int64_t error_sample = 0;
    std::vector<std::string> notes;  // of skipped samples, for take() to report
    MaskedValues masked;
  };

  Slot& slot(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }
  const Slot& slot(int64_t number) const { return slots_[static_cast<size_t>(number) % slots_.size()]; }
  bool is_complete(int64_t number) const { return number < planned_ && slot(number).unfinished == 0; }
  bool reads_across_epochs() const { return options_.persistent || options_.num_workers == 0; }
  void start_threads();
  void stop_threads();
  void work(const std::stop_token& stop, ReadWatch& watch);
  void wait_for_readers(std::unique_lock<std::mutex>& lock);
  bool try_work(std::unique_lock<std::mutex>& lock);
  bool find_work();
  void plan_slot();
  void read_sample(const Slot& target, int64_t sample, int64_t passed, SampleOutcome& outcome) const;
  void say(const std::vector<std::string>& notes) const;
  void say_masked(const MaskedValues& masked, const MicroBatch& place);

  const Dataset& dataset_;
  const Sampler sampler_;
  const EpochPlan plan_;
  const BatchRingOptions options_;
  const std::vector<ChannelOp> input_ops_, target_ops_;  // of data sets that do not transform themselves

  mutable std::mutex mutex_;
  std::condition_variable_any work_;  // a slot became free, or the ring moved
  std::condition_variable_any done_;  // a slot became complete, or a thread finished a sample
  std::vector<Slot> slots_;
  // Batches are numbered from the start or the last seek: [released_, taken_) are in the owner's hands, [taken_, planned_) are
  // being read, [reading_, planned_) may still have samples to give out.
  int64_t released_ = 0, taken_ = 0, reading_ = 0, planned_ = 0;
  MicroBatch next_;  // the place of the batch that is planned next
  int64_t in_flight_ = 0;
  int64_t epoch_ = 0;  // of the last batch taken; without persistent threads nothing is planned beyond it
  bool paused_ = false;
  MaskedValues masked_;  // of the epoch so far
  bool has_said_masked_ = false;
  double reported_age_ = 0;  // of the stalled read that was reported last, seconds
  std::atomic<int64_t> samples_read_ = 0;
  std::vector<std::unique_ptr<ReadWatch>> watches_;  // one per thread, or one for take() where it reads
  std::optional<StallWatch> owner_watch_;            // where take() reads: no other thread waits for it
  std::vector<std::jthread> threads_;                // last: the threads use all of the above
};

}  // namespace welkin::data
