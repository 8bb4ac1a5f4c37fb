// SPDX-License-Identifier: Apache-2.0
// The fixed crops of a validation box.
#include <algorithm>
#include <cmath>

#include "data/datasets/box_dataset.h"

namespace welkin::data {
namespace {

// Shifts of the rounds: the additive recurrence of the three-dimensional golden ratio (M. Roberts, "The unreasonable
// effectiveness of quasirandom sequences", 2018), which spreads any number of rounds evenly.
constexpr std::array<double, 3> kRoundSteps{0.8191725133961645, 0.6710436067037893, 0.5497004779019703};

int64_t round_shift(int64_t round, size_t axis, int64_t starts) {
  const double place = static_cast<double>(round) * kRoundSteps[axis];
  return static_cast<int64_t>((place - std::floor(place)) * static_cast<double>(starts));
}

}  // namespace

std::array<int64_t, 3> cover_crop(int64_t index, int64_t count, const std::array<int64_t, 3>& starts,
                                  const std::array<int64_t, 3>& tiles) {
  const int64_t per_round = tiles[0] * tiles[1] * tiles[2];
  const int64_t round = index / per_round;
  const int64_t in_round = std::min(per_round, count - round * per_round);
  // A whole number of tiles per index would favour the box's first corner when the last round is not full.
  int64_t tile = static_cast<int64_t>(static_cast<__int128>(index % per_round) * per_round / in_round);
  std::array<int64_t, 3> origin{};
  for (size_t axis = 3; axis-- > 0;) {
    const int64_t place = tile % tiles[axis];
    tile /= tiles[axis];
    const int64_t start = tiles[axis] == 1 ? 0 : place * (starts[axis] - 1) / (tiles[axis] - 1);
    origin[axis] = (start + round_shift(round, axis, starts[axis])) % starts[axis];
  }
  return origin;
}

}  // namespace welkin::data
