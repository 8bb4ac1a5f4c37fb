// SPDX-License-Identifier: Apache-2.0
// Fields whose rows begin at the other pole, or whose columns begin at another meridian, laid as another grid of the same places
// has them: WeatherBench2's files are south first.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace welkin::data {

// Degrees; an empty axis is not known.
struct GridAxes {
  std::vector<double> latitude, longitude;
};

// What files that name no places are taken for where another one names its own: rows from north to south, columns of a whole
// circle from 0 eastwards. An axis of `named` that is so already stays.
GridAxes assumed_axes(const GridAxes& named);

class GridTurn {
 public:
  GridTurn() = default;  // leaves fields as they are

  // The turn from one grid onto another. Nullopt where their places differ. An axis that one of them does not know stays.
  static std::optional<GridTurn> onto(const GridAxes& to, const GridAxes& from);

  void apply(std::span<float> fields, int64_t rows, int64_t columns) const;  // (..., rows, columns), in place

 private:
  bool flips_ = false;
  int64_t first_column_ = 0;  // of the fields, where the other grid has its first
};

}  // namespace welkin::data
