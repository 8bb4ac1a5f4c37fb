// SPDX-License-Identifier: Apache-2.0
// Fields on the sphere between spherical harmonics and points, one pair of rows (north and its mirror in the south) at a time.
// So a model needs no global grid: points of a pair are made, used and taken back while they are in the cache.
//
// A bundle of fields holds scalars first, then vectors of two values each. In modes a vector is (stream function, velocity
// potential) going to points and (curl, divergence) coming back, all on the unit sphere; at points it is (eastward, northward).
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "data/simulate/fft.h"
#include "data/simulate/globe/legendre.h"

namespace welkin::data::simulate {

struct Bundle {
  int64_t scalars = 0;
  int64_t vectors = 0;
  int64_t columns() const { return scalars + 2 * vectors; }
};

// (mode, column)
using ModeValues = std::vector<std::complex<double>>;

// Thread-safe after construction.
class SphereTransform {
 public:
  SphereTransform(Latitudes rows, int64_t width, int64_t truncation);

  const Triangle& modes() const { return table_.modes(); }
  const Latitudes& rows() const { return rows_; }
  int64_t height() const { return rows_.count(); }
  int64_t width() const { return width_; }
  int64_t pairs() const { return table_.pairs(); }

  // `points`: (width, 2, columns), north first; where the pair is the equator alone both are equal.
  void to_points(int64_t pair, Bundle bundle, const ModeValues& modes, std::vector<double>& points) const;
  // Adds what this pair contributes to the modes; needs rows with quadrature weights. `points` is used up.
  void add_to_modes(int64_t pair, Bundle bundle, std::vector<double>& points, ModeValues& modes) const;

 private:
  using Fourier = std::vector<std::complex<double>>;  // (order, 2, columns)

  Fourier sum_degrees(int64_t pair, Bundle bundle, const ModeValues& modes) const;
  void project_degrees(int64_t pair, Bundle bundle, const Fourier& fourier, ModeValues& modes) const;

  Latitudes rows_;
  int64_t width_;
  LegendreTable table_;
  Fft<double> fft_;
};

}  // namespace welkin::data::simulate
