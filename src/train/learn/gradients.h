// SPDX-License-Identifier: Apache-2.0
// The work between the backward pass and the update: the global norm, the check for non-finite numbers, and the factor by which
// the update multiplies gradients, so that unscaling and clipping need no pass of their own. Everything stays on the device.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "train/learn/precision.h"

namespace welkin::train {

struct GradientStatus {
  at::Tensor norm;       // () float32 global 2-norm of unscaled gradients, before clipping
  at::Tensor scale{};    // () float32 that turns these gradients into unscaled and clipped ones
  at::Tensor found_inf;  // () float32; 1: the update must be skipped
  at::Tensor overflow;   // () float32; 1: fp16 overflow: the scaler lowers the scale, nothing is reported
  at::Tensor nonfinite;  // () float32; 1: loss or gradient is not finite at any loss scale
};

// () float32 2-norm of all tensors together.
at::Tensor global_norm(const std::vector<at::Tensor>& tensors);

// The reductions that the ranks of a split model need: without one a process knows all its gradients.
struct GradientScope {
  // () float32 norm of all gradients of the model, from this rank's.
  std::function<at::Tensor(const std::vector<at::Tensor>&)> norm = global_norm;
  // () float32: 1 where it is 1 on any rank.
  std::function<at::Tensor(const at::Tensor&)> any = [](const at::Tensor& flag) { return flag; };
};

// Reads `gradients` once, as the backward pass of the scaled loss left them, and does not change them. Clipping is to a global
// norm of `clip_norm` (0: never). `loss` is the step's unscaled mean loss, (). A norm beyond float32 counts as not finite, and
// so does that of gradients which are still scaled.
GradientStatus check_gradients(const std::vector<at::Tensor>& gradients, const at::Tensor& loss, const LossScaler& scaler,
                               double clip_norm, const GradientScope& scope = {});

}  // namespace welkin::train
