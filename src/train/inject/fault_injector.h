// SPDX-License-Identifier: Apache-2.0
// Makes the faults of this rank happen: at the beginning of a step, where a span of the step begins, where a file of a
// checkpoint is written, and in the losses of its micro-batches. A run without --inject has no injector.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/fault/write_watch.h"
#include "observe/timeline/span.h"
#include "parallel/shard/param_table.h"
#include "train/inject/faults.h"

namespace welkin::train {

class FaultInjector : public observe::SpanSink {
 public:
  // Keeps the faults that may concern this rank.
  FaultInjector(const std::vector<Fault>& faults, int64_t rank);
  FaultInjector(const FaultInjector&) = delete;
  FaultInjector& operator=(const FaultInjector&) = delete;

  // `say` gets a sentence about each fault before it happens, and the step. It is called on any thread.
  using Say = std::function<void(const std::string& text, std::string_view kind, int64_t step)>;
  // Called before the first step of a start, with the folder of checkpoints and the number of steps that the run has done.
  // Faults of these steps are left out, and `say` is told: a job that is queued again passes the same faults again. `loss_ranks`:
  // the ranks whose losses are made here. Of a pipeline, the last stage makes that of all its stages, and the others make none:
  // a fault in the loss of any of them is one of the last.
  void open(const std::filesystem::path& checkpoints, int64_t steps_done, Say say, std::vector<int64_t> loss_ranks);

  // Called after the last step of the run: names the faults whose place never came.
  void say_unused(int64_t steps_done);

  // Called before step `step`, from 1. Throws if the fault is an exception.
  void begin_step(int64_t step, parallel::ParamTable& table);
  // Changes a micro-batch's loss, and the scaled loss from which its backward pass starts.
  void change_losses(at::Tensor& loss, at::Tensor& scaled);
  bool changes_losses() const;
  // True if any rank of the job drops its connections.
  bool drops_connections() const { return drops_connections_; }
  bool watches_spans() const;

  void begin(std::string_view name) noexcept override;
  void end(std::string_view /*name*/, observe::SpanClock::time_point /*began*/) noexcept override {}

 private:
  struct Pending {
    Fault fault;
    int64_t passed = 0;     // places of its phase that it let pass
    int64_t last_step = 0;  // the step in which it happened last
    int64_t times = 0;      // how often it happened
  };
  bool concerns(const Fault& fault) const;
  void leave_out_passed(int64_t steps_done);
  bool is_due(Pending& pending, std::string_view phase, int64_t step) const;
  void at_phase(std::string_view phase);
  int on_write(WriteStage stage, const std::filesystem::path& path);
  void say(const Fault& fault, int64_t step, const std::string& more = "") const;
  void happen(const Fault& fault, int64_t step);
  void flip_weight(const Fault& fault, parallel::ParamTable& table) const;

  std::mutex mutex_;  // checkpoint writers run on threads of their own
  std::vector<Pending> pending_;
  bool drops_connections_ = false;
  std::vector<int64_t> loss_ranks_;
  int64_t step_ = 0;
  std::filesystem::path checkpoints_;
  Say say_;
  std::unique_ptr<WriteWatchScope> watch_;
};

}  // namespace welkin::train
