// SPDX-License-Identifier: Apache-2.0
// The relative L2 loss in the arithmetic of the reference. Its float32 norms add up in a few lanes: over the 5.2 million points
// of a whole field they are 1.3e-4 too small, more than the bound of a case. Parity of the model is judged with the reference's
// arithmetic, and Welkin's own loss against float64.
#pragma once

#include <ATen/core/Tensor.h>

namespace welkin::verify {

// prediction, target (B, C, ...) -> () mean over the batch of ||prediction - target|| / ||target||. Differentiable.
at::Tensor norm_ratio_loss(const at::Tensor& prediction, const at::Tensor& target);

// (rows) float64 weights of the tutorials' metrics: with 3.1416 for pi, so that the poles' weights are slightly negative.
at::Tensor tutorial_latitude_weights(int64_t rows);

}  // namespace welkin::verify
