// SPDX-License-Identifier: Apache-2.0
// Latitudes of a grid and their weights in an integral over the sphere; float64, torch-free.
#pragma once

#include <cstdint>
#include <vector>

namespace welkin::ops {

// For the integral over the cosine of the colatitude from -1 to 1, so the weights add up to 2. From north to south.
struct Quadrature {
  std::vector<double> cosines;
  std::vector<double> weights;
};

// Gauss-Legendre quadrature: exact for polynomials of degree 2 n - 1. The nodes are the roots of the Legendre polynomial P_n,
// by Newton's method. n >= 1.
Quadrature legendre_gauss(int64_t n);

// Clenshaw-Curtis quadrature at colatitudes pi k / (n - 1), both poles included: exact for polynomials of degree n - 1. n >= 2.
Quadrature clenshaw_curtis(int64_t n);

}  // namespace welkin::ops
