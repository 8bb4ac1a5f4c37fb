// SPDX-License-Identifier: Apache-2.0
// The Gaussian initial field of a box, mode by mode: mode (k0, k1, k2) is a pure function of seed and wave numbers, so a box of
// the same size and seed at another resolution has the same large-scale modes.
#pragma once

#include <array>
#include <complex>
#include <cstdint>

#include "data/simulate/universe/cosmology.h"

namespace welkin::data::simulate {

// Complex normal number of unit variance, with value(-k) = conj(value(k)). k is not zero.
std::complex<double> white_mode(uint64_t key, int64_t k0, int64_t k1, int64_t k2);

// Mode of the displacement's component `axis` in cells, for a density mode: psi = i k delta / k^2, so that delta = -div psi.
std::complex<double> displacement_mode(std::complex<double> density, std::array<int64_t, 3> k, size_t axis, int64_t edge);

struct InitialField {
  LinearPower power;
  uint64_t key = 0;        // stream_key(seed, split)
  int64_t edge = 0;        // cells
  double box_mpc_h = 0.0;  // edge of the box

  // Mode of the linear density contrast today; 0 for k = 0 and for waves at the mesh's limit (k = edge / 2), which are not real.
  std::complex<double> density(int64_t k0, int64_t k1, int64_t k2) const;
};

}  // namespace welkin::data::simulate
