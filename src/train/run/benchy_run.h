// SPDX-License-Identifier: Apache-2.0
// --enable_benchy: the run measures as the tutorials' benchy does around their training loader, and ends. IO trials run before
// the model is built, then one trial per epoch of SYNTHETIC and of FULL; no initial losses, no validation, no checkpoint.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <vector>

#include "core/stopwatch.h"
#include "data/pipeline/pipeline.h"
#include "observe/timeline/span.h"
#include "train/benchy/benchy.h"
#include "train/learn/lr_schedule.h"
#include "train/run/trainer_context.h"
#include "train/step/step.h"

namespace welkin::train {

class BenchyRun {
 public:
  // Makes one step from a source of micro-batches.
  using StepFrom = std::function<void(const Step::Source&)>;
  using IsStopped = std::function<bool()>;

  // `context` outlives it. ConfigError for a run that benchy cannot measure, before anything is opened.
  explicit BenchyRun(const TrainerContext& context);

  // Runs the IO trials. `loader` and `tracer` outlive it; the loader starts over afterwards.
  void read(data::Pipeline& loader, const observe::Tracer& tracer, c10::Device device, IsStopped is_stopped);
  // Runs all other trials, as epochs of a run of that length, and writes the JSON. False if the run was interrupted after them.
  bool run(const RunLength& length, const StepFrom& step);

 private:
  double now() const;
  void run_trial(const BenchyTrial& trial, const Step::Source& next, const std::function<void(const Step::Source&)>& work);
  void run_epoch(const BenchyTrial& trial, const StepFrom& step);
  void finish();

  const TrainerContext& context_;
  Benchy benchy_;
  Stopwatch watch_;
  data::Pipeline* loader_ = nullptr;
  const observe::Tracer* tracer_ = nullptr;
  c10::Device device_ = c10::kCPU;
  IsStopped is_stopped_;
};

}  // namespace welkin::train
