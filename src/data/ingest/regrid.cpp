// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/regrid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/error.h"
#include "core/text.h"
#include "data/sample/row_cells.h"

namespace welkin::data::ingest {
namespace {

constexpr double kRadians = std::numbers::pi / 180, kTurn = 360;
constexpr double kTiny = 1e-9;       // degrees: rounding of coordinates
constexpr double kLeastShare = 0.5;  // of a target point's weight that must have a value

// Borders of the cells of longitudes: halfway between points, and half a step beyond the last ones.
std::vector<double> bounds_of(const std::vector<double>& centres) {
  const size_t count = centres.size();
  std::vector<double> bounds;
  const double first = count > 1 ? centres[1] - centres[0] : kTurn,
               last = count > 1 ? centres[count - 1] - centres[count - 2] : kTurn;
  bounds.push_back(centres.front() - first / 2);
  for (size_t i = 1; i < count; ++i) bounds.push_back((centres[i - 1] + centres[i]) / 2);
  bounds.push_back(centres.back() + last / 2);
  return bounds;
}

// Sines of latitudes: areas are differences of them.
std::vector<double> latitude_bounds(const std::vector<double>& centres) {
  std::vector<double> bounds = row_borders(centres);
  for (double& bound : bounds) bound = std::sin(bound * kRadians);
  return bounds;
}

double overlap(double a0, double a1, double b0, double b1) { return std::max(0.0, std::min(a1, b1) - std::max(a0, b0)); }

// Shares of a cell [low, high] that lie in each of the source's cells, moved by `shifts` (a turn of longitude).
std::vector<AxisWeights::Part> shares_of(double low, double high, const std::vector<double>& bounds,
                                         std::initializer_list<double> shifts) {
  std::vector<AxisWeights::Part> parts;
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    const double begin = std::min(bounds[i], bounds[i + 1]), end = std::max(bounds[i], bounds[i + 1]);
    double share = 0;
    for (const double shift : shifts) share += overlap(low, high, begin + shift, end + shift);
    if (share > 0) parts.push_back({static_cast<int32_t>(i), share / (high - low)});
  }
  return parts;
}

AxisWeights conservative(const std::vector<double>& from, const std::vector<double>& to, bool is_latitude) {
  const std::vector<double> source = is_latitude ? latitude_bounds(from) : bounds_of(from);
  const std::vector<double> target = is_latitude ? latitude_bounds(to) : bounds_of(to);
  AxisWeights weights;
  for (size_t i = 0; i + 1 < target.size(); ++i) {
    const double low = std::min(target[i], target[i + 1]), high = std::max(target[i], target[i + 1]);
    weights.of.push_back(is_latitude ? shares_of(low, high, source, {0.0}) : shares_of(low, high, source, {-kTurn, 0.0, kTurn}));
  }
  return weights;
}

bool goes_around(const std::vector<double>& longitude) {
  const double step = longitude.size() > 1 ? longitude[1] - longitude[0] : kTurn;
  return std::abs(longitude.back() - longitude.front() + step - kTurn) < 1e-3 * step;
}

// Weights of the two neighbours; beyond the last latitude, that latitude alone.
AxisWeights linear(const std::vector<double>& from, const std::vector<double>& to, bool is_latitude) {
  AxisWeights weights;
  const auto count = static_cast<int32_t>(from.size());
  const bool around = !is_latitude && goes_around(from);
  for (const double target : to) {
    double place = target;
    while (!is_latitude && place < from.front() - kTiny) place += kTurn;
    while (!is_latitude && place >= from.front() + kTurn - kTiny) place -= kTurn;
    int32_t before = 0;  // the last point that is not beyond
    const auto is_passed = [&](double point) { return is_latitude ? point >= place - kTiny : point <= place + kTiny; };
    while (before + 1 < count && is_passed(from[static_cast<size_t>(before) + 1])) ++before;
    const bool is_last = before + 1 == count;
    const double low = from[static_cast<size_t>(before)];
    const double high = is_last ? (around ? from.front() + kTurn : low) : from[static_cast<size_t>(before) + 1];
    const double share = high == low ? 0.0 : std::clamp((place - low) / (high - low), 0.0, 1.0);
    std::vector<AxisWeights::Part> parts{{before, 1 - share}};
    if (share > 0) parts.push_back({is_last ? 0 : before + 1, share});
    weights.of.push_back(std::move(parts));
  }
  return weights;
}

AxisWeights weights_along(const std::vector<double>& from, const std::vector<double>& to, bool is_latitude, RegridMethod method) {
  return method == RegridMethod::Conservative ? conservative(from, to, is_latitude) : linear(from, to, is_latitude);
}

// Points outside of the source would have no neighbours to interpolate from.
void check_covers(const Grid& from, const Grid& to) {
  const std::vector<double> rows = row_borders(from.latitude), wanted = to.latitude;
  const double north = std::max(rows.front(), rows.back()), south = std::min(rows.front(), rows.back());
  const bool has_rows = wanted.front() <= north + kTiny && wanted.back() >= south - kTiny;
  const std::vector<double> columns = bounds_of(from.longitude);
  const auto is_inside = [&](double place) {
    for (const double shift : {-kTurn, 0.0, kTurn}) {
      if (place + shift >= columns.front() - kTiny && place + shift <= columns.back() + kTiny) return true;
    }
    return false;
  };
  if (has_rows && (goes_around(from.longitude) || std::ranges::all_of(to.longitude, is_inside))) return;
  throw DataError("ingest",
                  cat("the new grid goes beyond the data: latitude ", south, " to ", north, ", longitude ", columns.front(),
                      " to ", columns.back(), ", wanted latitude ", wanted.back(), " to ", wanted.front(), ", longitude ",
                      to.longitude.front(), " to ", to.longitude.back()),
                  "Choose data of the whole globe");
}

}  // namespace

Grid equiangular_grid(int64_t rows, int64_t columns) {
  Grid grid;
  for (int64_t i = 0; i < rows; ++i)
    grid.latitude.push_back(90 - (static_cast<double>(i) + 0.5) * 180 / static_cast<double>(rows));
  for (int64_t j = 0; j < columns; ++j) grid.longitude.push_back(static_cast<double>(j) * kTurn / static_cast<double>(columns));
  return grid;
}

Regridder::Regridder(const Grid& from, const Grid& to, RegridMethod method)
    : to_(to),
      columns_(static_cast<int64_t>(from.longitude.size())),
      rows_(weights_along(from.latitude, to.latitude, /*is_latitude=*/true, method)),
      columns_weights_(weights_along(from.longitude, to.longitude, /*is_latitude=*/false, method)),
      sums_(from.longitude.size()),
      weights_(from.longitude.size()) {
  check_covers(from, to);
}

// Combines the source's rows for a row of the target, by column of the source, and then the columns along that row.
void Regridder::apply(std::span<const float> from, std::span<float> to) {
  const int64_t width = columns_weights_.size();
  for (int64_t i = 0; i < rows_.size(); ++i) {
    std::ranges::fill(sums_, 0.0);
    std::ranges::fill(weights_, 0.0);
    for (const auto& [row, weight] : rows_.of[static_cast<size_t>(i)]) {
      for (int64_t column = 0; column < columns_; ++column) {
        const float value = from[static_cast<size_t>(row * columns_ + column)];
        if (std::isnan(value)) continue;
        sums_[static_cast<size_t>(column)] += weight * static_cast<double>(value);
        weights_[static_cast<size_t>(column)] += weight;
      }
    }
    for (int64_t j = 0; j < width; ++j) {
      double sum = 0, share = 0;
      for (const auto& [column, weight] : columns_weights_.of[static_cast<size_t>(j)]) {
        sum += weight * sums_[static_cast<size_t>(column)];
        share += weight * weights_[static_cast<size_t>(column)];
      }
      const bool has_value = share >= kLeastShare - kTiny;
      to[static_cast<size_t>(i * width + j)] =
          has_value ? static_cast<float>(sum / share) : std::numeric_limits<float>::quiet_NaN();
    }
  }
}

}  // namespace welkin::data::ingest
