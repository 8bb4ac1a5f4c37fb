// SPDX-License-Identifier: Apache-2.0
// One step of a forecast: the model's prediction from an input.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "train/evaluate/trained_model.h"

namespace welkin::train {

// The key of dropout's masks, if dropout is on: these members of the start at that time, at a step of their forecasts.
struct MemberKeys {
  uint64_t seed = 0;
  int64_t start_seconds = 0;
  std::vector<int64_t> members;
  int64_t step = 0;
};

// input (B, C, H, W) normalised on the model's device -> (B, C', H, W) float32.
at::Tensor predict_step(const TrainedModel& model, const at::Tensor& input, const MemberKeys& keys);

}  // namespace welkin::train
