// SPDX-License-Identifier: Apache-2.0
#include "observe/report/thin_curve.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/error.h"

namespace welkin::observe {
namespace {

// Points that are kept of an interval.
struct StretchExtremes {
  std::optional<size_t> smallest{}, largest{}, not_finite{};
};

StretchExtremes extremes_of(std::span<const ScalarPoint> points, size_t begin, size_t end) {
  StretchExtremes found;
  for (size_t i = begin; i < end; ++i) {
    const double value = points[i].value;
    if (!std::isfinite(value)) {
      if (!found.not_finite) found.not_finite = i;
      continue;
    }
    if (!found.smallest || value < points[*found.smallest].value) found.smallest = i;
    if (!found.largest || value > points[*found.largest].value) found.largest = i;
  }
  return found;
}

}  // namespace

std::vector<ScalarPoint> thinned(std::span<const ScalarPoint> points, size_t most) {
  constexpr size_t kEnds = 2, kOfStretch = 3;
  WELKIN_CHECK(most >= kEnds + kOfStretch, "too few points to keep");
  if (points.size() <= most) return {points.begin(), points.end()};
  const bool finite = std::ranges::all_of(points, [](const ScalarPoint& point) { return std::isfinite(point.value); });
  const size_t stretches = (most - kEnds) / (finite ? kOfStretch - 1 : kOfStretch), inner = points.size() - kEnds;
  std::vector<ScalarPoint> kept{points.front()};
  for (size_t s = 0; s < stretches; ++s) {
    const StretchExtremes found = extremes_of(points, 1 + s * inner / stretches, 1 + (s + 1) * inner / stretches);
    std::array<std::optional<size_t>, kOfStretch> places{found.smallest, found.largest, found.not_finite};
    if (places[0] == places[1]) places[1].reset();
    std::ranges::sort(places);  // absent indices come first
    for (const auto& place : places) {
      if (place) kept.push_back(points[*place]);
    }
  }
  kept.push_back(points.back());
  return kept;
}

}  // namespace welkin::observe
