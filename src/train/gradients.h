// SPDX-License-Identifier: Apache-2.0
// What happens between the backward pass and the update: unscaling, the global norm, the verdict on non-finite numbers, clipping.
// Everything stays on the device.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "train/precision.h"

namespace welkin::train {

struct GradientVerdict {
  at::Tensor norm;       // () float32 global 2-norm after unscaling, before clipping
  at::Tensor found_inf;  // () float32; 1: the update must be skipped
  at::Tensor overflow;   // () float32; 1: fp16 overflow, which the scaler answers; no event
  at::Tensor nonfinite;  // () float32; 1: loss or gradient is not finite and no scale can help
};

// () float32 2-norm of all tensors together.
at::Tensor global_norm(const std::vector<at::Tensor>& tensors);

// What the ranks of a split model have to add: without it a process knows all its gradients.
struct GradientScope {
  // () float32 norm of all gradients of the model, from this rank's.
  std::function<at::Tensor(const std::vector<at::Tensor>&)> norm = global_norm;
  // () float32: 1 where it is 1 on any rank.
  std::function<at::Tensor(const at::Tensor&)> any = [](const at::Tensor& flag) { return flag; };
};

// Unscales `gradients` in place, and scales them down to a global norm of `clip_norm` where it is larger (0: never). `loss` is
// the step's unscaled mean loss, (). A norm beyond float32 counts as not finite.
GradientVerdict finish_gradients(const std::vector<at::Tensor>& gradients, const at::Tensor& loss, const LossScaler& scaler,
                                 double clip_norm, const GradientScope& scope = {});

}  // namespace welkin::train
