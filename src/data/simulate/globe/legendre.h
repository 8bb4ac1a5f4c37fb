// SPDX-License-Identifier: Apache-2.0
// Associated Legendre functions at given latitudes, for spherical harmonics of triangular truncation, and Gaussian latitudes.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace welkin::data::simulate {

// Rows from north to south, symmetric about the equator; sin and cos of latitude. The cosine may be 0 (poles).
struct Latitudes {
  std::vector<double> sine, cosine;
  std::vector<double> weight;  // of the quadrature over sin(latitude), sum 2; empty where rows are for output only

  int64_t count() const { return static_cast<int64_t>(sine.size()); }
};

// Zeros of the Legendre polynomial P_count by Newton's method, with the weights of Gauss's quadrature.
Latitudes gaussian_latitudes(int64_t count);
// 90 - 180 j / (count - 1) degrees: the tutorials' rows, poles included.
Latitudes equiangular_latitudes(int64_t count);

// Modes of triangular truncation M: order m = 0..M, degree n = m..M, degree fastest.
struct Triangle {
  int64_t truncation = 0;

  int64_t count() const { return (truncation + 1) * (truncation + 2) / 2; }
  int64_t index(int64_t m, int64_t n) const { return m * (2 * truncation + 3 - m) / 2 + n - m; }
};

// Values at the northern row of each pair of rows, for all modes of the triangle:
//   p = P_n^m(sin lat), normalised so that the integral of p^2 over sin(lat) is 1, without the Condon-Shortley sign;
//   slope = dp / dlat;  turn = m p / cos(lat), finite at the poles.
// p is even or odd about the equator as n - m is; slope is the other way round, turn as p.
class LegendreTable {
 public:
  LegendreTable(const Latitudes& rows, int64_t truncation);

  int64_t pairs() const { return pairs_; }
  const Triangle& modes() const { return modes_; }
  const double* p(int64_t pair) const { return p_.data() + pair * modes_.count(); }
  const double* slope(int64_t pair) const { return slope_.data() + pair * modes_.count(); }
  const double* turn(int64_t pair) const { return turn_.data() + pair * modes_.count(); }

 private:
  void fill_pair(double sine, double cosine, double* p, double* slope, double* turn) const;

  Triangle modes_;
  int64_t pairs_;
  std::vector<double> p_, slope_, turn_;
};

}  // namespace welkin::data::simulate
