// SPDX-License-Identifier: Apache-2.0
// One step of a forecast: what the model makes of states and of the computed channels of the time that it predicts.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "data/forecast/field_states.h"
#include "train/evaluate/trained_model.h"

namespace welkin::train {

// Which masks dropout draws, where it is on: those of these members of the start at that time, at a step of their forecasts.
struct MemberKeys {
  int64_t start_seconds = 0;
  std::vector<int64_t> members;
  int64_t step = 0;
};

// states (B, history * C, H, W) normalised on the model's device -> (B, C', H, W) float32.
at::Tensor predict_step(const TrainedModel& model, const data::FieldStates& fields, const at::Tensor& states,
                        int64_t valid_seconds, const MemberKeys& keys);

}  // namespace welkin::train
