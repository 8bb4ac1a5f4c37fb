// SPDX-License-Identifier: Apache-2.0
// The transform of real fields on the sphere to coefficients of spherical harmonics, and back (Driscoll and Healy 1994; in the
// form of Bonev et al. 2023, arXiv:2306.03838): a Fourier transform along each circle of latitude, then for each order m a matmul
// by Legendre functions along the meridian. Both ways are linear, and differentiable once.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "ops/base/device_constant.h"

namespace welkin::ops {

enum class LatitudeGrid {
  Equiangular,   // in equal steps from pole to pole, both included
  LegendreGauss  // the nodes of Gauss-Legendre quadrature
};

struct SphericalGrid {
  int64_t latitudes = 0, longitudes = 0;  // from north to south; eastwards from 0, in equal steps
  int64_t degrees = 0;                    // l from 0 to degrees - 1
  int64_t orders = 0;                     // m from 0 to orders - 1; at most longitudes / 2 + 1
  LatitudeGrid grid = LatitudeGrid::Equiangular;
};

class SphericalTransform {
 public:
  explicit SphericalTransform(const SphericalGrid& grid);

  const SphericalGrid& grid() const { return grid_; }

  // x (..., H, W), real -> (..., L, M), complex: the integral of x times the conjugate harmonic over the sphere, by the grid's
  // quadrature. In float32, also under autocast; in float64 if x is.
  at::Tensor analyse(const at::Tensor& x) const;
  // The field with these coefficients (..., L, M): the sum over l and m, with the coefficients of -m that make it real. It
  // inverts analyse() for fields without higher degrees if the quadrature is exact: degrees <= latitudes of a Gaussian
  // grid, 2 degrees <= latitudes + 1 of an equiangular one, and orders <= (longitudes + 1) / 2.
  at::Tensor synthesise(const at::Tensor& coefficients) const;

 private:
  SphericalGrid grid_;
  DeviceConstant functions_;  // (M, L, H)
  DeviceConstant weights_;    // (H), including the length of a circle
};

}  // namespace welkin::ops
