// SPDX-License-Identifier: Apache-2.0
// Power spectra: how the mean square of a field is divided over scales. A forecast that blurs loses power at high wavenumbers
// while its RMSE looks good. Both spectra add up to the (weighted) mean square of the field (Parseval).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace welkin::train {

// fields (B, C, H, W), weights (H) with mean 1 -> (B, C, W / 2 + 1) float64 on the CPU: entry m is the weighted mean over the
// rows of the mean square of zonal wavenumber m (waves along a row), negative frequency included.
at::Tensor zonal_spectrum(const at::Tensor& fields, const at::Tensor& weights);

// boxes (B, C, D, H, W) of cubic cells -> (B, C, K) float64 on the CPU: entry k is the mean square of all modes whose wave vector
// has a length that rounds to k, in waves per longest edge. K covers the corners of the cube of wave vectors.
at::Tensor radial_spectrum(const at::Tensor& boxes);

// The power of a spectrum's entries that count as small scales: wavenumbers above half of the axis' Nyquist wavenumber.
// spectrum (..., K) and the number of points along the longest axis -> (...) power at small scales.
at::Tensor small_scale_power(const at::Tensor& spectrum, int64_t points);

}  // namespace welkin::train
