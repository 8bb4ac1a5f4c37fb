// SPDX-License-Identifier: Apache-2.0
// The Gaussian initial field of a box, mode by mode: mode (k0, k1, k2) is a pure function of seed and wave numbers, so a box of
// the same size and seed at another resolution has the same large-scale modes.
#pragma once

#include <complex>
#include <cstdint>

#include "data/simulate/cosmology.h"

namespace welkin::data::simulate {

// Complex normal number of unit variance, with value(-k) = conj(value(k)). k is not zero.
std::complex<double> white_mode(uint64_t key, int64_t k0, int64_t k1, int64_t k2);

struct InitialField {
  LinearPower power;
  uint64_t key = 0;        // stream_key(seed, split)
  int64_t edge = 0;        // cells
  double box_mpc_h = 0.0;  // edge of the box

  // Mode of the linear density contrast today; 0 for k = 0 and for waves at the mesh's limit (k = edge / 2), which are not real.
  std::complex<double> density(int64_t k0, int64_t k1, int64_t k2) const;
  // Component `axis` of the displacement psi of the same mode, in cells: delta = -div psi.
  std::complex<double> displacement(int64_t k0, int64_t k1, int64_t k2, int axis) const;
};

}  // namespace welkin::data::simulate
