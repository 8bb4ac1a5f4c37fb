// SPDX-License-Identifier: Apache-2.0
// Initial values: element i of a parameter is a function of (seed, its full name, i) alone. So weights do not depend on the
// order of construction, on threads, or on how they are sharded. Functions fill in place, without gradient, on any device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

namespace welkin::model {

// N(0, deviation^2). The tutorials' truncated normal has bounds of +-2, which are 100 deviations and cut nothing, but its
// generator occasionally returned the lower bound itself. Values here stay within 6.8 deviations.
void fill_normal(const at::Tensor& parameter, uint64_t seed, std::string_view name, double deviation);

// Uniform in [-bound, bound].
void fill_uniform(const at::Tensor& parameter, uint64_t seed, std::string_view name, double bound);

void fill_constant(const at::Tensor& parameter, double value);

}  // namespace welkin::model
