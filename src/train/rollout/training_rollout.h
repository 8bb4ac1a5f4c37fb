// SPDX-License-Identifier: Apache-2.0
// Training over several steps of the model: each step gets the prediction before it as input, and the loss is the mean over
// their leads. It works on samples of data/sample/sequences.h, whose channels say how many steps they have, and knows no
// layout: the caller passes the forward pass and the losses.
//
// With several members (loss.ensemble_members) each walks by itself, with its own masks of dropout and noise. The loss of a
// lead is the members' loss against the target, less half of their loss against each other. For absolute errors this is the
// continuous ranked probability score in its fair form (C. A. T. Ferro, Quart. J. Roy. Meteor. Soc. 140 (2014) 1917).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "model/base/forward_context.h"
#include "train/rollout/state_feed.h"

namespace welkin::train {

using PredictionHook = std::function<void(const at::Tensor& prediction)>;
using LossesOfPrediction = std::function<at::Tensor(const at::Tensor& prediction, const at::Tensor& target)>;

// A step of the model: its prediction (B, C', ...), and the losses (B) of a prediction.
struct StepOfModel {
  std::function<at::Tensor(const at::Tensor& input, const model::ForwardContext& context)> forward;
  LossesOfPrediction losses{};
};

class TrainingRollout {
 public:
  // `spec` is that of one model step; `region` is the part of every sample that is read (nothing: the whole). ConfigError of
  // StateFeed, if the configuration asks for more than one step.
  TrainingRollout(const data::SampleSpec& spec, const config::RunConfig& config, std::optional<data::Region> region,
                  c10::Device device);

  // The number of steps in samples with such a target.
  int64_t steps_of(const at::Tensor& target) const { return target.size(1) / feed_.target_channels(); }

  // input (B, C + (n - 1) known channels, ...) and target (B, n C', ...) of n steps -> (B): means over the steps, or with
  // `multistep_gradient: last` the losses of the last one. The first step's masks of dropout are those of a run of one step.
  at::Tensor losses(const at::Tensor& input, const at::Tensor& target, const model::ForwardContext& context,
                    const StepOfModel& step, const PredictionHook& on_first) const;
  // (), the sum of all outputs over the same passes, without noise and losses: for a rank that has no samples.
  at::Tensor outputs(const at::Tensor& input, const at::Tensor& target, const model::ForwardContext& context,
                     const StepOfModel& step) const;

  // The input, and the target, that a single step would read of a sample of several steps.
  at::Tensor first_input(const at::Tensor& input) const { return input.narrow(1, 0, feed_.input_channels()); }
  at::Tensor first_target(const at::Tensor& target) const { return target_of(target, 1); }

  // The parts of losses(), for a caller with an order of passes of its own; leads from 1. start(): the first lead's input, with
  // noise if a gradient is wanted. next(): the input of the lead after the one of `input` and `prediction`; `samples` and
  // `target` are whole. score(): the losses (B) of all members' predictions for one lead; a single member has its own.
  // only_last(): true if only the last lead has a gradient and losses.
  at::Tensor start(const at::Tensor& input, const at::Tensor& target, const model::ForwardContext& context) const;
  at::Tensor next(const at::Tensor& input, const at::Tensor& prediction, const at::Tensor& samples, const at::Tensor& target,
                  int64_t lead) const;
  at::Tensor target_of(const at::Tensor& target, int64_t lead) const;
  static model::ForwardContext context_of(const model::ForwardContext& first, int64_t lead);
  int64_t members() const { return members_; }
  static model::ForwardContext context_of_member(const model::ForwardContext& first, int64_t member);
  static at::Tensor score(const std::vector<at::Tensor>& members, const at::Tensor& target, const LossesOfPrediction& losses);
  bool only_last() const { return only_last_; }

 private:
  using Visit = std::function<void(int64_t lead, const at::Tensor& prediction, const at::Tensor& target)>;
  at::Tensor ensemble_losses(const at::Tensor& input, const at::Tensor& target, const model::ForwardContext& context,
                             const StepOfModel& step, const PredictionHook& on_first) const;
  void walk(at::Tensor input, const at::Tensor& all_input, const at::Tensor& target, const model::ForwardContext& context,
            const StepOfModel& step, const Visit& visit) const;

  StateFeed feed_;
  std::vector<int64_t> grid_;
  std::optional<data::Region> region_;
  double noise_;
  bool only_last_;
  int64_t members_;
};

}  // namespace welkin::train
