// SPDX-License-Identifier: Apache-2.0
// What is summed over members: one member's contribution has been rounded once already; rounding every partial sum again would
// add up.
#pragma once

#include <ATen/core/Tensor.h>

namespace welkin::parallel {

inline at::Tensor widened(const at::Tensor& x) {
  const bool low = x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf;
  return low ? x.to(at::kFloat) : x;
}

}  // namespace welkin::parallel
