// SPDX-License-Identifier: Apache-2.0
// Analytic gradients against central differences in double: the one check that every operator's gradient test uses.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace welkin::ops::testing {

struct GradientCheckOptions {
  double step = 1e-5;       // of the central difference: truncation ~ step^2, rounding ~ 1e-16 / step
  double tolerance = 1e-7;  // of max|analytic - numeric| over max(1, max|numeric|)
};

// `function` maps double tensors to one tensor; the scalar differentiated is the sum of its output times fixed weights, so that
// no gradient of the output is uniform. Returns the largest error over all inputs, in units of the tolerance: at most 1 is good.
double gradient_error(const std::function<at::Tensor(const std::vector<at::Tensor>&)>& function, std::vector<at::Tensor> inputs,
                      const GradientCheckOptions& options = {});

// Values in (-1, 1), the same for the same seed; double.
at::Tensor test_values(at::IntArrayRef shape, uint64_t seed);

}  // namespace welkin::ops::testing
