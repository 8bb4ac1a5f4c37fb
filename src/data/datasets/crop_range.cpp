// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/crop_range.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/error.h"
#include "core/text.h"

namespace welkin::data {
namespace {

constexpr double kCircle = 360;
constexpr double kSlack = 1e-4;  // degrees: coordinates in float32 are rounded

struct NamedRange {
  std::string_view key, coordinate, places;
  const std::vector<double>& wanted;
  const std::vector<double>& of_file;
};

[[noreturn]] void refuse_range(const FieldFacts& facts, const NamedRange& range, std::string_view what, std::string_view remedy) {
  throw DataError("data",
                  cat(what, ": path=", facts.path.string(), ", ", range.key, "=[", join(range.wanted, ", "), "], ",
                      range.coordinate, "s of the file=", range.of_file.front(), " to ", range.of_file.back()),
                  remedy);
}

void check_has_places(const FieldFacts& facts, const NamedRange& range) {
  if (!range.of_file.empty()) return;
  throw DataError("data",
                  cat("the file does not say the ", range.coordinate, "s of its ", range.places, ": path=", facts.path.string(),
                      ", ", range.key, "=[", join(range.wanted, ", "), "]"),
                  "Give crop as the first row and column instead");
}

// Degrees east of `west`, in [0, 360) but for rounding.
double east_of(double longitude, double west) {
  double degrees = std::fmod(longitude - west, kCircle);
  if (degrees < 0) degrees += kCircle;
  return degrees > kCircle - kSlack ? degrees - kCircle : degrees;
}

}  // namespace

bool goes_around(const FieldFacts& facts) {
  const std::vector<double>& longitude = facts.longitude;
  if (longitude.size() < 2) return false;
  const double step = longitude[1] - longitude[0];
  const double closing = longitude.front() - longitude.back() + std::copysign(kCircle, step);
  const double missing = kCircle - std::abs(step) * static_cast<double>(longitude.size());  // of evenly spaced columns
  return std::abs(closing - step) < 0.01 * std::abs(step) && std::abs(missing) < 0.5 * std::abs(step);
}

GridRange rows_within(const FieldFacts& facts, const std::vector<double>& degrees) {
  const NamedRange range{"crop.lat", "latitude", "rows", degrees, facts.latitude};
  check_has_places(facts, range);
  const auto inside = [&](double latitude) { return latitude >= degrees[0] - kSlack && latitude <= degrees[1] + kSlack; };
  const auto first = std::ranges::find_if(facts.latitude, inside);
  const auto count = std::count_if(first, facts.latitude.end(), inside);
  if (count == 0) refuse_range(facts, range, "no row of the grid lies in the range", "Give a range that the file has");
  return {first - facts.latitude.begin(), count};
}

GridRange columns_within(const FieldFacts& facts, const std::vector<double>& degrees) {
  const NamedRange range{"crop.lon", "longitude", "columns", degrees, facts.longitude};
  check_has_places(facts, range);
  const auto width = static_cast<int64_t>(facts.longitude.size());
  const auto inside = [&](int64_t column) {
    const double longitude = facts.longitude[static_cast<size_t>((column + width) % width)];
    return east_of(longitude, degrees[0]) <= degrees[1] - degrees[0] + kSlack;
  };
  int64_t count = 0;
  for (int64_t column = 0; column < width; ++column) count += inside(column) ? 1 : 0;
  if (count == 0) refuse_range(facts, range, "no column of the grid lies in the range", "Give a range that the file has");
  if (count == width) return {0, width};
  int64_t first = 0;
  while (!inside(first) || inside(first - 1)) ++first;  // the only one that begins a run, but where a grid has a gap
  int64_t run = 1;
  while (run < count && inside(first + run)) ++run;
  const bool ends_inside = first + count <= width;
  if (run == count && (ends_inside || goes_around(facts))) return {first, count};
  refuse_range(facts, range, "the range goes beyond the last column of a grid that does not go around",
               "Give a range between these, or files that begin elsewhere");
}

std::vector<double> longitudes_of(const FieldFacts& facts, const FieldWindow& window) {
  const int64_t before = std::min(window.width, facts.width - window.column);
  if (facts.longitude.empty()) return {};
  const auto first = facts.longitude.begin() + window.column;
  std::vector<double> degrees(first, first + before);
  if (before == window.width) return degrees;
  for (double& longitude : degrees) longitude -= std::copysign(360.0, facts.longitude[1] - facts.longitude[0]);
  degrees.insert(degrees.end(), facts.longitude.begin(), facts.longitude.begin() + window.width - before);
  return degrees;
}

}  // namespace welkin::data
