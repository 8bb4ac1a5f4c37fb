// SPDX-License-Identifier: Apache-2.0
// The loss over a validation set: every sample exactly once, whatever the batch size, unless validation_rule says otherwise; for
// fields also the RMSE of the first channel.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "config/run_config.h"
#include "core/signals.h"
#include "data/pipeline.h"
#include "model/model.h"
#include "train/journal.h"
#include "train/loss.h"

namespace welkin::train {

// The samples of one step on this rank, in forward passes of micro_batch_size.
data::PipelineOptions pipeline_options(const config::RunConfig& config, c10::Device device, bool drop_last);

class Validator {
 public:
  // All arguments outlive it.
  Validator(const data::Dataset& dataset, model::Model& model, const Loss& loss, const config::RunConfig& config,
            c10::Device device);

  // Evaluation mode, autocast as in training. Nothing when `stop()` said so between two batches. `epoch` (from 0) matters only
  // where the rules draw samples anew.
  std::optional<ValidationReport> run(int64_t epoch, const std::function<bool()>& stop);

  // The first batch alone in fp32 and in the model's present mode, as the tutorials' initial losses; leaves no trace.
  ValidationReport first_batch();

 private:
  struct Sums;
  void add_batch(Sums& sums, const data::Batch& batch, config::AmpMode mode) const;
  ValidationReport report(const Sums& sums, double seconds) const;

  const data::Dataset& dataset_;
  model::Model& model_;
  const Loss& loss_;
  const config::RunConfig& config_;
  c10::Device device_;
  at::Tensor weights_;  // (H) of the rows; undefined for boxes
  data::Pipeline pipeline_;
};

}  // namespace welkin::train
