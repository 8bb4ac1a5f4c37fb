// SPDX-License-Identifier: Apache-2.0
// Makes batches from samples: reading threads, a ring of reused buffers, the copy to the device and the device transform.
// Positions of an epoch are split as steps of `global_batch`; a rank takes its `local_batch` of each, in micro-batches.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/pipeline/sample_check.h"
#include "data/sample/dataset.h"
#include "data/sample/epoch_plan.h"
#include "data/sample/sampler.h"
#include "observe/timeline/span.h"

namespace welkin::data {

struct PipelineOptions {
  int64_t global_batch = 1;  // samples of one step over all ranks
  int64_t micro_batch = 1;   // samples of one batch that next() returns (the last of a step may be shorter)
  int64_t shard = 0;         // this rank's place among `num_shards` data-parallel ranks
  int64_t num_shards = 1;
  bool drop_last = true;  // an incomplete last step is dropped (training); else it is shorter (validation)
  ShardRule shard_rule = ShardRule::Exact;
  int64_t num_workers = 0;     // reading threads; 0 = read inside next()
  int64_t prefetch_depth = 2;  // batches held ready
  c10::Device device = c10::kCPU;
  bool persistent_workers = true;  // else the reading threads end with every epoch and nothing is read ahead across its end
  bool pin_memory = true;          // page-locked host buffers, for a GPU only
  bool resident = false;           // all values are held on the device and cut there; no reading threads, no ring
  bool non_blocking = true;        // copies to a GPU run on a stream of their own; else the step waits for each
  SampleRules rules{};             // unreadable samples, NaN
  double stall_seconds = 0;        // a read that takes longer is reported; 0: never
  std::function<void(const std::string&)> report{};   // skipped samples, NaN; called by next()
  std::function<void(const std::string&)> stalled{};  // reports reads that hang; report() is called where it is empty
  // For ranks that read the same samples, so that each skips what another cannot read. Takes the number of bad samples that
  // were skipped for each sample of a batch; returns the largest of any rank, or nothing when all are alike. A collective:
  // next() calls it on each of these ranks until all are alike.
  std::function<std::vector<int64_t>(const std::vector<int64_t>&)> agree{};
  const observe::Tracer* tracer = nullptr;  // spans "read", one per sample, on the reading threads; outlives the pipeline
  std::optional<Region> region{};           // the part of every sample that this rank reads; the whole when absent
};

struct Batch {
  at::Tensor input;              // (B, C, ...) float32 on the device, normalised
  at::Tensor target;             // (B, C', ...)
  at::Tensor sample;             // (B) int64 on the device: position in the epoch, keys dropout
  std::vector<int64_t> indices;  // (B) sample indices, for reports
  int64_t epoch = 0;
  int64_t step = 0;   // step within the epoch
  int64_t micro = 0;  // micro-batch within the step
  int64_t num_micro = 1;
  int64_t step_samples = 0;    // samples of this step on this rank, over all its micro-batches
  int64_t first_position = 0;  // in the epoch, of the first sample
};

// The place of the next batch. All that a resume needs, and the same on every rank.
struct PipelineState {
  int64_t epoch = 0;
  int64_t step = 0;
};

// One owner, one thread calls next(). An error of a reading thread is rethrown by next(). The data set outlives the pipeline.
class Pipeline {
 public:
  Pipeline(const Dataset& dataset, Sampler sampler, PipelineOptions options);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  int64_t steps_per_epoch() const;
  uint64_t buffer_bytes() const;    // host memory of the ring, which does not grow
  int64_t num_buffers() const;      // batches of it; each is memory that the kernel clears when it is first written
  uint64_t resident_bytes() const;  // on the device
  int64_t samples_read() const;     // by the reading threads so far, read-ahead included
  // The next micro-batch; after the last of an epoch the first of the next. Its tensors are valid until the call after next.
  Batch next();
  PipelineState state() const;              // of the step that the next call to next() belongs to (only between steps)
  void resume(const PipelineState& state);  // drops batches that were read ahead
  // The samples that this rank reads in a step; for messages.
  std::vector<SampleKey> keys_of(const PipelineState& step) const;
  // Sample indices of a step over all ranks, in the order of their shards; as planned, even where one was replaced.
  std::vector<int64_t> samples_of_all(const PipelineState& step) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace welkin::data
