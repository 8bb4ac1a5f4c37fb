// SPDX-License-Identifier: Apache-2.0
// The cloud-in-cell kernel in fixed point. A place is rounded to 2^-16 of a cell, so that the eight weights of a particle are
// integers whose sum is exactly 2^48. Deposits add integers, which makes them exact and the same in any order.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace welkin::data::simulate {

inline constexpr int kCloudBits = 16;
inline constexpr int64_t kCloudUnit = int64_t{1} << (3 * kCloudBits);  // weight of a whole particle

// The lattice of particles stands half a cell beside the mesh: on it, where the slope of the kernel jumps, a small displacement
// would act on the cell downstream only, and waves would grow unevenly.
inline constexpr double kLatticeOffset = 0.5;

// The two cells that a particle touches along an axis of `edge` cells, and their weights (of 2^16).
struct CloudAxis {
  std::array<int64_t, 2> cell;
  std::array<int64_t, 2> weight;
};

inline CloudAxis cloud_axis(int64_t lattice, float displacement, int64_t edge) {
  const double place = static_cast<double>(lattice) + kLatticeOffset + static_cast<double>(displacement);
  const double below = std::floor(place);
  const int64_t upper = std::llrint((place - below) * (1 << kCloudBits));
  int64_t cell = static_cast<int64_t>(below) % edge;
  if (cell < 0) cell += edge;
  return {.cell = {cell, cell + 1 == edge ? 0 : cell + 1}, .weight = {(1 << kCloudBits) - upper, upper}};
}

}  // namespace welkin::data::simulate
