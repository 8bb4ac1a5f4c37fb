// SPDX-License-Identifier: Apache-2.0
// Central differences, one element at a time.
#include "gradient_check.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <cmath>

#include "core/philox.h"

namespace welkin::ops::testing {
namespace {

using Function = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

at::Tensor weighted_sum(const Function& function, const std::vector<at::Tensor>& inputs) {
  const at::Tensor out = function(inputs);
  return out.mul(test_values(out.sizes(), 99)).sum();
}

at::Tensor numeric_gradient(const Function& function, const std::vector<at::Tensor>& inputs, size_t which, double step) {
  const at::NoGradGuard no_grad;
  at::Tensor gradient = at::empty_like(inputs[which]);
  double* values = inputs[which].data_ptr<double>();
  for (int64_t i = 0; i < inputs[which].numel(); ++i) {
    const double center = values[i];
    values[i] = center + step;
    const double above = weighted_sum(function, inputs).item<double>();
    values[i] = center - step;
    const double below = weighted_sum(function, inputs).item<double>();
    values[i] = center;
    gradient.data_ptr<double>()[i] = (above - below) / (2 * step);
  }
  return gradient;
}

}  // namespace

double gradient_error(const Function& function, std::vector<at::Tensor> inputs, const GradientCheckOptions& options) {
  for (at::Tensor& input : inputs) input.requires_grad_();
  weighted_sum(function, inputs).backward();
  double worst = 0;
  for (size_t which = 0; which < inputs.size(); ++which) {
    const at::Tensor numeric = numeric_gradient(function, inputs, which, options.step);
    const double scale = std::max(1.0, numeric.abs().max().item<double>());
    const double error = inputs[which].grad().sub(numeric).abs().max().item<double>() / scale / options.tolerance;
    worst = std::isnan(error) ? error : std::max(worst, error);
  }
  return worst;
}

at::Tensor test_values(at::IntArrayRef shape, uint64_t seed) {
  at::Tensor values = at::empty(shape, at::kDouble);
  double* out = values.data_ptr<double>();
  for (int64_t i = 0; i < values.numel(); ++i) out[i] = 2 * open_unit(philox(seed, 0, static_cast<uint64_t>(i))[0]) - 1;
  return values;
}

}  // namespace welkin::ops::testing
