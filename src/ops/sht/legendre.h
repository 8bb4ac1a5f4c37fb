// SPDX-License-Identifier: Apache-2.0
// Associated Legendre functions, normalised so that P_lm(cos theta) exp(i m phi) are orthonormal spherical harmonics; float64,
// torch-free.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace welkin::ops {

// P_lm at each cosine: (orders, degrees, cosines), zero where l < m, with the phase (-1)^m of Condon and Shortley, as
// in scipy.special.sph_harm_y. By the recurrence in l from P_mm, which loses no digits (Holmes and Featherstone 2002, section
// 2.1). Valid for degrees up to 1900; beyond, sin(theta)^m leaves the range of float64.
std::vector<double> legendre_table(int64_t orders, int64_t degrees, std::span<const double> cosines);

}  // namespace welkin::ops
