// SPDX-License-Identifier: Apache-2.0
// A trained model inside of another program: fields are set by name in the units of the run's files, the model makes one step,
// and fields are read back. It knows no file and no time: computed channels (forcing) are set like any other channel.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "data/pipeline/sample_check.h"
#include "data/sample/dataset.h"
#include "train/coupling/field_layout.h"
#include "train/evaluate/trained_model.h"

namespace welkin::train {

// Takes a normalised value back to the units of the files: x * std + mean, then eps * (exp(x) - 1) if there is an eps.
struct ChannelScale {
  double mean = 0, std = 1, log_eps = 0;
};

class FieldStepper {
 public:
  // The model outlives it.
  explicit FieldStepper(const TrainedModel& model);

  const data::ArraySpec& input() const { return spec_.input; }
  const data::ArraySpec& target() const { return spec_.target; }
  const std::vector<int64_t>& shape() const { return shape_; }  // of a field: without channels

  // One pass over the values: copy, clip, logarithm and normalisation. With several input times, the newest channel of this
  // name is set. NaN marks a point without a value: a step takes what the run's nan_policy puts there in training. ConfigError
  // for a channel that the model does not take, strides that do not fit, NaN if the run takes none, values that are not finite
  // in float32, and values without a logarithm if the run takes it.
  void set(const std::string& channel, const void* values, const FieldLayout& layout);

  // Computes the targets of the inputs that are set. ConfigError naming the inputs that never were.
  void step();

  // A target of the last step, or an input as it was set (within float32). ConfigError for other names and before a step.
  void get(const std::string& channel, void* values, const FieldLayout& layout) const;

  // The predictions become the inputs of the next step, without conversion to the caller's units. Channels that are not
  // predicted keep their values, and points without a value stay so. ConfigError for a model of several input times or with
  // different transforms of inputs and targets, and before a step.
  void advance();

 private:
  int64_t channel_of(const std::string& channel) const;  // index among the input channels

  const TrainedModel& model_;
  const data::SampleSpec& spec_;
  std::vector<int64_t> shape_, earlier_;
  std::vector<data::ChannelOp> ops_;
  std::vector<ChannelScale> input_scale_, target_scale_;
  data::NanPolicy nan_policy_;
  std::vector<bool> is_set_, has_nan_;
  at::Tensor input_;       // (1, C, ...) normalised, on the CPU
  at::Tensor prediction_;  // (1, C', ...) normalised, on the CPU; undefined before a step
  int64_t steps_ = 0;
};

}  // namespace welkin::train
