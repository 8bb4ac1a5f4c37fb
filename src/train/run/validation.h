// SPDX-License-Identifier: Apache-2.0
// The loss over a validation set: every sample exactly once, whatever the batch size, unless validation_rule says otherwise; for
// fields also the RMSE of the first channel.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/schema/run_config.h"
#include "core/process/signals.h"
#include "data/pipeline/pipeline.h"
#include "parallel/comm/group.h"
#include "train/learn/sample_shard.h"
#include "train/monitor/validation_metric.h"
#include "train/run/metric_logger.h"
#include "train/step/setup.h"

namespace welkin::train {

// The samples of one step on this rank of `replicas`, in forward passes of micro_batch_size; of each sample `region`.
data::PipelineOptions pipeline_options(const config::RunConfig& config, const parallel::Group& replicas, c10::Device device,
                                       bool drop_last, const std::optional<data::Region>& region = {});

// What a pipeline tells and asks while it reads (data::PipelineOptions).
struct ReadingEvents {
  std::function<void(const std::string&)> report{}, stalled{};
  std::function<std::vector<int64_t>(const std::vector<int64_t>&)> agree{};

  void add_to(data::PipelineOptions& options) const { options.report = report, options.stalled = stalled, options.agree = agree; }
};

// What the report says of a metric.
double value_of(const ValidationReport& report, const ValidationMetric& metric);

class Validator {
 public:
  // All references outlive it. Ranks that train alike share the samples, and all get the report.
  Validator(const data::Dataset& dataset, TrainSetup& setup, const config::RunConfig& config, c10::Device device,
            const ReadingEvents& events);

  // Evaluation mode, autocast as in training. Nothing when `stop()`, which must say the same on every rank, said so between two
  // steps. `epoch` (from 0) matters only where the rules draw samples anew. DataError where no point has a value.
  std::optional<ValidationReport> run(int64_t epoch, const std::function<bool()>& stop);

  // After the first epoch: DataError where its loss is 0 since no target of it had a point with a value.
  void check_trained(double loss) const;

  // The first batch alone in fp32 and in the model's present mode, as the tutorials' initial losses; leaves no trace.
  ValidationReport first_batch();

 private:
  struct Sums;
  int64_t rmse_samples(int64_t place) const;  // where the number of samples of the RMSE at that place stands
  at::Tensor batch_sums(const data::Batch& batch, config::AmpMode mode) const;
  at::Tensor sums_of(const at::Tensor& prediction, const data::Batch& batch) const;
  void add_step(Sums& sums, config::AmpMode mode);
  void add_pipeline_step(Sums& sums, config::AmpMode mode);
  ValidationReport report(Sums& sums, double seconds) const;

  TrainSetup& setup_;
  const config::RunConfig& config_;
  parallel::Group replicas_;
  SampleShard shard_;  // of each sample, what this rank reads
  c10::Device device_;
  at::Tensor weights_;            // (H) of the rows; undefined for boxes
  bool has_holes_ = false;        // points of the target may have no value
  std::vector<int64_t> watched_;  // channels besides the first whose RMSE is wanted
  data::Pipeline pipeline_;
};

}  // namespace welkin::train
