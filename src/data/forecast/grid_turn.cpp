// SPDX-License-Identifier: Apache-2.0
#include "data/forecast/grid_turn.h"

#include <algorithm>
#include <cmath>

#include "data/sample/likeness.h"

namespace welkin::data {
namespace {

constexpr double kAround = 360;

// Distance between two longitudes, on the shorter way around.
double distance_around(double one, double other) { return std::abs(std::remainder(one - other, kAround)); }

std::optional<int64_t> first_column_of(const std::vector<double>& to, const std::vector<double>& from) {
  constexpr double kSameDegrees = 1e-4;
  const size_t count = to.size();
  for (size_t first = 0; first < count; ++first) {
    bool is_same = true;
    for (size_t i = 0; i < count && is_same; ++i) is_same = distance_around(to[i], from[(first + i) % count]) <= kSameDegrees;
    if (is_same) return static_cast<int64_t>(first);
  }
  return {};
}

}  // namespace

GridAxes assumed_axes(const GridAxes& named) {
  GridAxes assumed = named;
  if (!assumed.latitude.empty() && assumed.latitude.front() < assumed.latitude.back()) std::ranges::reverse(assumed.latitude);
  std::vector<double>& columns = assumed.longitude;
  if (columns.size() < 2) return assumed;
  const double step = columns[1] - columns[0], width = step * static_cast<double>(columns.size());
  const bool goes_around = std::abs(std::abs(width) - kAround) < std::abs(step) / 2;
  if (!goes_around || columns.front() >= 0) return assumed;
  for (double& degrees : columns) degrees -= kAround * std::floor(degrees / kAround);
  std::ranges::sort(columns);
  return assumed;
}

std::optional<GridTurn> GridTurn::onto(const GridAxes& to, const GridAxes& from) {
  GridTurn turn;
  if (!to.latitude.empty() && !from.latitude.empty() && !are_same_places(to.latitude, from.latitude)) {
    turn.flips_ = true;
    if (!are_same_places(to.latitude, {from.latitude.rbegin(), from.latitude.rend()})) return {};
  }
  if (to.longitude.empty() || from.longitude.empty()) return turn;
  if (to.longitude.size() != from.longitude.size()) return {};
  const std::optional<int64_t> first = first_column_of(to.longitude, from.longitude);
  if (!first) return {};
  turn.first_column_ = *first;
  return turn;
}

void GridTurn::apply(std::span<float> fields, int64_t rows, int64_t columns) const {
  if (!flips_ && first_column_ == 0) return;
  const auto plane = static_cast<std::ptrdiff_t>(rows * columns);
  for (auto field = fields.begin(); field != fields.end(); field += plane) {
    for (int64_t row = 0; row < rows; ++row) {
      const auto begin = field + row * columns;
      std::rotate(begin, begin + first_column_, begin + columns);
    }
    for (int64_t row = 0; flips_ && row < rows / 2; ++row) {
      const auto begin = field + row * columns;
      std::swap_ranges(begin, begin + columns, field + (rows - 1 - row) * columns);
    }
  }
}

}  // namespace welkin::data
