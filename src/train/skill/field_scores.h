// SPDX-License-Identifier: Apache-2.0
// One field of all members of an ensemble against its truth: weighted means over the points of each region. Points whose truth is
// NaN, or whose weight is 0, do not count. Sums are double.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace welkin::train {

// The measures of a field. Means over the points but for Acc.
enum class Measure : uint8_t {
  SquareError,  // of the members' mean
  Error,        // members' mean minus truth
  Absolute,     // |members' mean - truth|
  Acc,          // sum(w f t) / sqrt(sum(w f^2) sum(w t^2)) of the anomalies from the climatology; NaN without one
  Crps,         // fair: mean |x - t| - sum |x_i - x_j| / (2 M (M - 1)); with one member |x - t|
  Variance,     // of the members, with M - 1
  Brier,        // of the event that the truth is above the climatology; NaN without one
  Quantile01,   // quantile scores (u - q) with the pinball's weights, of the members' quantiles by linear interpolation
  Quantile05,
  Quantile95,
  Quantile99,
};
inline constexpr size_t kNumMeasures = 11;
inline constexpr std::array<double, 4> kScoredQuantiles{0.01, 0.05, 0.95, 0.99};

struct FieldScores {
  std::array<double, kNumMeasures> measures{};
  int64_t points = 0;            // of the region, whose truth has a value
  bool has_points = false;       // some point of the region counts; measures that are no numbers come from the members then
  bool has_climatology = false;  // and some of these has a climatology
  std::vector<double> ranks;     // share of the weight in which so many members are below the truth, 0 to M; ties are shared out
  std::vector<double> foreseen;  // share of the weight in which so many members foresee the event of Brier, 0 to M
  std::vector<double> happened;  // the part of it in which it happened
};

struct FieldCase {
  std::span<const float> members;      // (M, points)
  std::span<const float> truth;        // (points)
  std::span<const float> climatology;  // (points), or empty
};

// One per region; `weights` are those of regions.h. All NaN where no point counts.
std::vector<FieldScores> score_field(const FieldCase& field, const std::vector<std::vector<double>>& weights);

}  // namespace welkin::train
