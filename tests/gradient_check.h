// SPDX-License-Identifier: Apache-2.0
// Analytic gradients against central differences in double, and fused forms against reference forms: the two checks that the
// gradient tests of every layer and operator use.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/philox.h"
#include "tolerance.h"

namespace welkin::tests {

using TensorFunction = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

// Values in (-1, 1), the same for the same seed; double.
inline at::Tensor test_values(at::IntArrayRef shape, uint64_t seed) {
  at::Tensor values = at::empty(shape, at::kDouble);
  double* out = values.data_ptr<double>();
  for (int64_t i = 0; i < values.numel(); ++i) out[i] = 2 * open_unit(philox(seed, 0, static_cast<uint64_t>(i))[0]) - 1;
  return values;
}

// The scalar that is differentiated: the sum of the output times fixed weights, so that no gradient of the output is uniform.
inline at::Tensor weighted_sum(const TensorFunction& function, const std::vector<at::Tensor>& inputs) {
  const at::Tensor out = function(inputs);
  return out.mul(test_values(out.sizes(), 99).to(out.scalar_type())).sum();
}

inline at::Tensor numeric_gradient(const TensorFunction& function, const std::vector<at::Tensor>& inputs, size_t which,
                                   double step) {
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

// The best step of a central difference is the cube root of u, and its error u^(2/3) of the scale of function and third
// derivative, both of which are a few tens here: 64 u^(2/3) = 1.5e-9.
inline const double kDifferenceStep = std::cbrt(kFp64.roundoff);
inline const double kDifferenceBound = 64 * kDifferenceStep * kDifferenceStep;

// `function` maps contiguous double tensors to one tensor. For each input, max|analytic - numeric| over max(1, max|numeric|) is
// at most kDifferenceBound.
inline testing::AssertionResult gradcheck(const TensorFunction& function, std::vector<at::Tensor> inputs) {
  for (at::Tensor& input : inputs) {
    input.mutable_grad() = at::Tensor();
    input.requires_grad_();
  }
  weighted_sum(function, inputs).backward();
  for (size_t which = 0; which < inputs.size(); ++which) {
    const at::Tensor numeric = numeric_gradient(function, inputs, which, kDifferenceStep);
    if (!inputs[which].grad().defined()) return testing::AssertionFailure() << "input " << which << " has no gradient";
    const double scale = std::max(1.0, numeric.abs().max().item<double>());
    const double error = inputs[which].grad().sub(numeric).abs().max().item<double>() / scale;
    if (!(error <= kDifferenceBound)) {
      return testing::AssertionFailure() << "input " << which << ": error " << error << ", bound " << kDifferenceBound;
    }
  }
  return testing::AssertionSuccess();
}

// Forward and all gradients of two forms of one operator, both in the dtype of the inputs.
inline testing::AssertionResult same_results(const TensorFunction& fused, const TensorFunction& reference,
                                             const std::vector<at::Tensor>& inputs, int64_t reduction_length) {
  const auto run = [&](const TensorFunction& function) {
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& input : inputs) leaves.push_back(input.detach().requires_grad_());
    std::vector<at::Tensor> all{function(leaves)};
    all[0].mul(test_values(all[0].sizes(), 98).to(all[0].scalar_type())).sum().backward();
    for (const at::Tensor& leaf : leaves) all.push_back(leaf.grad());
    return all;
  };
  const std::vector<at::Tensor> got = run(fused), wanted = run(reference);
  for (size_t i = 0; i < got.size(); ++i) {
    const auto result = close(got[i], wanted[i], inputs[0].scalar_type(), reduction_length);
    if (!result) {
      return testing::AssertionFailure() << (i == 0 ? "output" : "gradient of input " + std::to_string(i - 1)) << ": "
                                         << result.message();
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace welkin::tests
