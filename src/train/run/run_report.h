// SPDX-License-Identifier: Apache-2.0
// The report of a run: its set-up in the log, and per epoch losses, times and throughput in the metric log.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "train/device/peak_source.h"
#include "train/monitor/step_log.h"
#include "train/run/metric_logger.h"
#include "train/run/run_data.h"
#include "train/run/run_state.h"
#include "train/run/trainer_context.h"
#include "train/step/setup.h"
#include "train/step/step_record.h"

namespace welkin::train {

class RunReport {
 public:
  // All references outlive it.
  RunReport(const TrainerContext& context, const TrainSetup& setup, const RunData& data, const RunState& state,
            c10::Device device, const ScalarFiles& files);

  void setup();  // logs lines about model, ranks, kernels
  void initial(double train_loss, const ValidationReport& valid);

  // Adds to the sums of this process and epoch.
  void add_step(const StepRecord& record);  // waits for the device if log_every_n_steps asks for a line
  void add_seconds(double seconds) { seconds_ += seconds; }
  void epoch(const EpochMeter& meter);
  void validation(const ValidationReport& report) { metric_logger_.validation(report, state_.position.iteration); }
  void event(const std::string& name, int64_t step) { metric_logger_.event(name, step); }
  void begin_epoch();
  void finish();  // writes what is still buffered, and logs the traffic between ranks
  void flush();   // the same without the traffic; also logs refused connections

  // True if this step's forward pass is needed: its memory is logged, or its prediction is drawn.
  bool wants_forward() const { return draws_this_step() || logs_this_step(); }
  // The picture of the first micro-batch's first sample, if this step has one.
  std::optional<ForecastPair> on_forward(const data::Batch& batch, const at::Tensor& prediction);
  // In a pipeline it sends the picture of the last stage to all; the first rank writes it. Every rank calls it in each step.
  void share(std::optional<ForecastPair>& picture) const;

 private:
  void model();
  void loss_weights();
  void ranks();
  std::string throughput();
  bool logs_this_step() const;
  bool draws_this_step() const;

  const TrainerContext& context_;
  const config::RunConfig& config_;
  const TrainSetup& setup_;
  const RunData& data_;
  const RunState& state_;
  c10::Device device_;
  MetricLogger metric_logger_;
  PeakSource peak_;  // for one rank
  StepLog step_log_;
  double train_flops_ = 0;  // per sample
  double seconds_ = 0;
  int64_t steps_ = 0;
  int64_t samples_ = 0, model_steps_ = 0;
};

}  // namespace welkin::train
