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

// The samples of one step on this rank of `replicas`, in forward passes of micro_batch_size; only `region` of each sample.
data::PipelineOptions pipeline_options(const config::RunConfig& config, const parallel::Group& replicas, c10::Device device,
                                       bool drop_last, const std::optional<data::Region>& region = {});

// The events and questions of a pipeline while it reads (data::PipelineOptions).
struct ReadingEvents {
  std::function<void(const std::string&)> report{}, stalled{};
  std::function<std::vector<int64_t>(const std::vector<int64_t>&)> agree{};

  void add_to(data::PipelineOptions& options) const { options.report = report, options.stalled = stalled, options.agree = agree; }
};

// The report's value of a metric.
double value_of(const ValidationReport& report, const ValidationMetric& metric);

class Validator {
 public:
  // All references outlive it. Replicas share the samples, and all get the report.
  Validator(const data::Dataset& dataset, TrainSetup& setup, const config::RunConfig& config, c10::Device device,
            const ReadingEvents& events);

  // Evaluation mode, autocast as in training. Nothing if `stop()`, which must be equal on every rank, was true between two
  // steps. `epoch` (from 0) matters only if the rules draw samples anew. DataError if no point has a value.
  std::optional<ValidationReport> run(int64_t epoch, const std::function<bool()>& stop);

  // Called after the first epoch: DataError if its loss is 0 because no target had a point with a value.
  void check_trained(double loss) const;

  // The first batch alone, in fp32 and in the model's present mode, as for the tutorials' initial losses; changes no state.
  ValidationReport first_batch();

 private:
  struct Sums;
  int64_t rmse_samples(int64_t place) const;  // index of the number of samples of the RMSE at that place
  at::Tensor batch_sums(const data::Batch& batch, config::AmpMode mode) const;
  at::Tensor sums_of(const at::Tensor& prediction, const data::Batch& batch) const;
  void add_step(Sums& sums, config::AmpMode mode);
  void add_pipeline_step(Sums& sums, config::AmpMode mode);
  ValidationReport report(Sums& sums, double seconds) const;

  TrainSetup& setup_;
  const config::RunConfig& config_;
  parallel::Group replicas_;
  SampleShard shard_;  // the part of each sample that this rank reads
  c10::Device device_;
  at::Tensor weights_;            // (H) of the rows; undefined for boxes
  bool has_holes_ = false;        // points of the target may have no value
  std::vector<int64_t> watched_;  // channels besides the first whose RMSE is wanted
  data::Pipeline pipeline_;
};

}  // namespace welkin::train
