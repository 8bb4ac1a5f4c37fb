// SPDX-License-Identifier: Apache-2.0
// The initial states of an ensemble's members: the state of the start, or an earlier one, and its perturbation.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "data/forecast/field_states.h"
#include "train/evaluate/trained_model.h"
#include "train/forecast/perturbation.h"
#include "train/forecast/state_step.h"

namespace welkin::train {

struct EnsembleStart {
  Perturbation perturbation;
  uint64_t seed = 0;         // of the perturbations, and of dropout
  bool has_control = false;  // member 0 is not perturbed
};

class InitialStates {
 public:
  // `step` outlives it.
  InitialStates(const StateStep& step, EnsembleStart start) : fields_(step.fields()), step_(step), start_(start) {}

  // Steps of the forecast by which a member begins before its start.
  int64_t steps_before(int64_t member) const { return start_.perturbation.kind == PerturbationKind::Lagged ? member : 0; }
  // Number of steps before a start whose states are needed for so many members.
  int64_t history_needed(int64_t members) const;

  // (B, C, H, W): whole inputs, normalised, on the model's device. Members of one steps_before(). `holes`: StateStep::holes() of
  // the start. DataError for a state with values that are not finite where the run does not take them for points without a value.
  at::Tensor make(const TrainedModel& model, int64_t start_seconds, const std::vector<int64_t>& members,
                  const at::Tensor& holes) const;

 private:
  at::Tensor read(const TrainedModel& model, int64_t seconds) const;  // (1, C, H, W)
  // (B, C, H, W): 0 in channels that are known in advance, and at points without a value.
  at::Tensor noise(int64_t start_seconds, const std::vector<int64_t>& members, const at::Tensor& holes) const;
  at::Tensor bred(const TrainedModel& model, int64_t start_seconds, const std::vector<int64_t>& members,
                  const at::Tensor& holes) const;
  at::Tensor rescaled_difference(const at::Tensor& difference) const;
  double spread_of(int64_t channel) const;

  const data::FieldStates& fields_;
  const StateStep& step_;
  EnsembleStart start_;
};

}  // namespace welkin::train
