// SPDX-License-Identifier: Apache-2.0
#include "data/sample/likeness.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/text.h"

namespace welkin::data {

// Float32 keeps a longitude to 2e-5 degrees.
bool are_same_places(const std::vector<double>& one, const std::vector<double>& other) {
  constexpr double kSameDegrees = 1e-4;
  return std::ranges::equal(one, other, [](double x, double y) { return std::abs(x - y) <= kSameDegrees; });
}

std::string difference_of_places(std::string_view name, const std::vector<double>& one, const std::vector<double>& other) {
  if (one.empty() || other.empty() || are_same_places(one, other)) return {};
  const auto range = [](const std::vector<double>& values) { return cat(values.front(), " to ", values.back()); };
  return cat(name, ": ", range(one), " and ", range(other));
}

std::string difference_of_grids(const std::vector<double>& one_latitude, const std::vector<double>& one_longitude,
                                const std::vector<double>& other_latitude, const std::vector<double>& other_longitude) {
  std::string rows = difference_of_places("latitudes", one_latitude, other_latitude);
  return rows.empty() ? difference_of_places("longitudes", one_longitude, other_longitude) : rows;
}

std::string difference_of_units(const std::vector<std::string>& names, const std::vector<std::string>& one,
                                const std::vector<std::string>& other) {
  for (size_t c = 0; c < std::min(one.size(), other.size()); ++c) {
    if (may_be_same_unit(one[c], other[c])) continue;
    return cat("units of ", c < names.size() ? names[c] : cat("channel ", c), ": ", one[c], " and ", other[c]);
  }
  return {};
}

std::string difference_of_hours(std::string_view name, double one, double other) {
  constexpr double kSameHours = 1.2;
  if (one <= 0 || other <= 0 || std::max(one, other) <= kSameHours * std::min(one, other)) return {};
  return cat(name, ": ", one, " and ", other);
}

std::string difference_of_samples(const SampleSpec& one, const SampleSpec& other) {
  for (const auto& [name, mine, theirs] :
       {std::tuple("input", &one.input, &other.input), std::tuple("target", &one.target, &other.target)}) {
    if (!mine->channels.empty() && !theirs->channels.empty() && mine->channels != theirs->channels) {
      return cat(name, " channels: ", join(mine->channels, " "), " and ", join(theirs->channels, " "));
    }
    std::string units = difference_of_units(mine->channels, mine->units, theirs->units);
    if (!units.empty()) return units;
    if (mine->shape != theirs->shape) {
      return cat(name, " shape: ", join(mine->shape, " x "), " and ", join(theirs->shape, " x "));
    }
  }
  for (std::string text : {difference_of_places("latitudes", one.latitude, other.latitude),
                           difference_of_places("longitudes", one.longitude, other.longitude),
                           difference_of_hours("hours between input and target", one.lead_hours, other.lead_hours)}) {
    if (!text.empty()) return text;
  }
  return {};
}

}  // namespace welkin::data
