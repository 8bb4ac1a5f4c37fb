// SPDX-License-Identifier: Apache-2.0
// Gaussian random fields on the sphere: sums of spherical harmonics with random coefficients, homogeneous and isotropic, with
// mean 0, variance 1 at every point, and a correlation that falls with distance d about as exp(-d^2 / (2 length^2)). Source:
// A. Weaver and P. Courtier, "Correlation modelling on the sphere using a generalized diffusion equation", Q. J. R. Meteorol.
// Soc. 127 (2001) 1815: the coefficients of degree l have the variance exp(-l (l + 1) length^2 / (2 radius^2)).
// SphereTransform of the simulator works on mirrored rows of whole circles; the grid of a run may be a part of the globe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace welkin::train {

class SphereNoise {
 public:
  // Places in degrees. Degrees that the distance of the rows does not show (above 1800), or of variance below 1e-8 of the first,
  // are left out.
  SphereNoise(std::vector<double> latitude, std::vector<double> longitude, double length_km);

  int64_t largest_degree() const { return static_cast<int64_t>(deviation_.size()) - 1; }
  // (latitude, longitude) row-major; a function of the key and the places alone: coefficient (l, m) is number l^2 + l + m of the
  // stream, so finer grids show the same field.
  void fill(uint64_t key, std::span<float> out) const;

 private:
  void fill_row(double sine, const std::vector<float>& coefficients, std::span<float> out) const;

  std::vector<double> latitude_, longitude_;
  std::vector<double> deviation_;      // of a coefficient of each degree
  std::vector<double> cosine_, sine_;  // of order times longitude, (order, longitude)
};

}  // namespace welkin::train
