// SPDX-License-Identifier: Apache-2.0
#include "train/learn/gradients.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>

#include "ops/device/device_ops.h"
#include "ops/update/device_update.h"
#include "ops/update/fused_update.h"

namespace welkin::train {
namespace {

at::Tensor one_if_not_finite(const at::Tensor& scalar) { return at::logical_not(at::isfinite(scalar)).to(at::kFloat); }

// As torch.nn.utils.clip_grad_norm_: the 1e-6 keeps the quotient finite.
at::Tensor clipping(const at::Tensor& norm, double clip_norm) { return (clip_norm / (norm + 1e-6)).clamp_max(1.0); }

// If all are float32 on a CPU: one pass in short sums.
std::vector<ops::FloatSpan> float_runs(const std::vector<at::Tensor>& tensors) {
  std::vector<ops::FloatSpan> runs;
  for (const at::Tensor& x : tensors) {
    if (!x.is_cpu() || x.scalar_type() != at::kFloat || !x.is_non_overlapping_and_dense()) return {};
    runs.push_back({x.const_data_ptr<float>(), x.numel()});
  }
  return runs;
}

std::vector<ops::FloatSpan> device_runs(const std::vector<at::Tensor>& tensors) {
  std::vector<ops::FloatSpan> runs;
  for (const at::Tensor& x : tensors) runs.push_back({x.const_data_ptr<float>(), x.numel()});
  return runs;
}

}  // namespace

at::Tensor global_norm(const std::vector<at::Tensor>& tensors) {
  if (!tensors.empty() && std::all_of(tensors.begin(), tensors.end(), ops::device_update_supports)) {
    return ops::device_ops().update.norm(device_runs(tensors), tensors.front().device());
  }
  const std::vector<ops::FloatSpan> runs = float_runs(tensors);
  if (!runs.empty()) return at::full({}, std::sqrt(ops::sum_of_squares(runs)), at::kFloat);
  return at::linalg_vector_norm(at::stack(at::_foreach_norm(tensors, 2)));
}

GradientStatus check_gradients(const std::vector<at::Tensor>& gradients, const at::Tensor& loss, const LossScaler& scaler,
                               double clip_norm, const GradientScope& scope) {
  const at::NoGradGuard no_grad;
  GradientStatus verdict;
  const at::Tensor unscaling = scaler.inverse();
  const at::Tensor norm = scope.norm(gradients);  // one non-finite element makes the norm non-finite
  verdict.overflow = scaler.enabled() ? scope.any(one_if_not_finite(norm)) : at::zeros_like(norm);
  verdict.norm = norm * unscaling;
  const at::Tensor bad_loss = one_if_not_finite(loss);
  const at::Tensor bad_gradient = scaler.enabled() ? verdict.overflow * scaler.at_minimum() : one_if_not_finite(verdict.norm);
  verdict.nonfinite = at::maximum(bad_loss, bad_gradient);
  verdict.found_inf = at::maximum(verdict.overflow, verdict.nonfinite);
  verdict.scale = clip_norm > 0 ? unscaling * clipping(verdict.norm, clip_norm) : unscaling;
  return verdict;
}

}  // namespace welkin::train
