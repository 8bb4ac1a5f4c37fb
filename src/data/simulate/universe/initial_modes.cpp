// SPDX-License-Identifier: Apache-2.0
#include "data/simulate/universe/initial_modes.h"

#include <cmath>
#include <numbers>

#include "core/philox.h"

namespace welkin::data::simulate {

std::complex<double> white_mode(uint64_t key, int64_t k0, int64_t k1, int64_t k2) {
  // One of k and -k is drawn: that whose first non-zero number is positive. The other is its conjugate.
  const bool mirrored = k0 < 0 || (k0 == 0 && (k1 < 0 || (k1 == 0 && k2 < 0)));
  if (mirrored) k0 = -k0, k1 = -k1, k2 = -k2;
  const auto word = [](int64_t k) { return static_cast<uint64_t>(static_cast<uint32_t>(static_cast<int32_t>(k))); };
  const PhiloxBlock block = philox(key, word(k0), (word(k1) << 32) | word(k2));
  const std::array<double, 2> normal = normal_pair(block[0], block[1]);
  const double scale = 1.0 / std::numbers::sqrt2;
  return {normal[0] * scale, (mirrored ? -normal[1] : normal[1]) * scale};
}

std::complex<double> InitialField::density(int64_t k0, int64_t k1, int64_t k2) const {
  const int64_t limit = edge / 2;
  const int64_t square = k0 * k0 + k1 * k1 + k2 * k2;
  if (square == 0 || std::abs(k0) >= limit || std::abs(k1) >= limit || std::abs(k2) >= limit) return 0.0;
  const double k = 2.0 * std::numbers::pi / box_mpc_h * std::sqrt(static_cast<double>(square));
  return white_mode(key, k0, k1, k2) * std::sqrt(power(k) / (box_mpc_h * box_mpc_h * box_mpc_h));
}

std::complex<double> displacement_mode(std::complex<double> density, std::array<int64_t, 3> k, size_t axis, int64_t edge) {
  const int64_t square = k[0] * k[0] + k[1] * k[1] + k[2] * k[2];
  if (square == 0) return 0.0;
  // Wave numbers in radians per cell.
  const double factor =
      static_cast<double>(edge) / (2.0 * std::numbers::pi) * static_cast<double>(k[axis]) / static_cast<double>(square);
  return {-density.imag() * factor, density.real() * factor};
}

}  // namespace welkin::data::simulate
