// SPDX-License-Identifier: Apache-2.0
// Learning rates as pure functions of the number of optimizer steps done: no state, so a resumed run needs no more than that
// number.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "config/schema/run_config.h"

namespace welkin::train {

class LrSchedule {
 public:
  virtual ~LrSchedule() = default;
  // The rate of the step that follows `steps_done` applied ones; also asked for steps_done = the whole run.
  virtual double rate(int64_t steps_done) const = 0;
};

// The length of a run, for schedules.
struct RunLength {
  int64_t total_steps = 0;      // optimizer steps that the run really does
  int64_t steps_per_epoch = 0;  // steps of a full epoch
  int64_t samples = 0;          // of an epoch, before any is dropped or repeated
};

using LrSchedulePtr = std::unique_ptr<const LrSchedule>;
using LrScheduleFactory = std::function<LrSchedulePtr(const config::RunConfig&, const RunLength&)>;

// start_lr times the factor of `scaling`: 1, sqrt(G / B) or G / B for a global batch G and a base batch B.
double peak_lr(const config::RunConfig& config);

// warmup_steps, except that the U-Net files (SC21, SC22) ramp only when the batch is stretched: G > B and scaling is not none.
int64_t ramp_steps(const config::RunConfig& config);

// Built-in schedules. All but the tutorials' begin with a ramp to the peak. With warmup_start_lr s, for k < ramp:
// rate(k) = s + (peak - s) (k + 1) / ramp, or with warmup_form log s + (peak - s) log(k + 1) / log(max(2, ramp)).
LrSchedulePtr constant_schedule(const config::RunConfig& config, const RunLength& length);
// A straight line to end_lr, which is reached after the last step.
LrSchedulePtr linear_schedule(const config::RunConfig& config, const RunLength& length);
// Half a cosine from the peak to end_lr over the real steps after the ramp. end_lr is reached after the last step, as in
// PyTorch's annealing; for the U-Net files, which count steps from 1, at the last one.
LrSchedulePtr cosine_schedule(const config::RunConfig& config, const RunLength& length);
// schedule.table: step, rate, step, rate, ...; linear in between, constant outside; `scaling` does not apply. ConfigError when
// the table is empty, odd, or its steps do not rise.
LrSchedulePtr table_schedule(const config::RunConfig& config, const RunLength& length);
// SC21 and SC22 as published: the cosine after the ramp is divided by the whole step count, num_epochs (samples // batch), which
// rounds epochs down, so end_lr is not reached.
LrSchedulePtr unet_tutorial_schedule(const config::RunConfig& config, const RunLength& length);
// SC23 and DL4SCI25 as published: the smaller of the ramp and the full cosine over num_iters, so a long ramp never reaches the
// peak, and 0 is not reached where the run rounds num_iters down to whole epochs.
LrSchedulePtr vit_tutorial_schedule(const config::RunConfig& config, const RunLength& length);

}  // namespace welkin::train
