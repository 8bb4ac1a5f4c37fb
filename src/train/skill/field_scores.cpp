// SPDX-License-Identifier: Apache-2.0
#include "train/skill/field_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.h"

namespace welkin::train {
namespace {

constexpr double kNoScore = std::numeric_limits<double>::quiet_NaN();

// The contribution of a point to every region that holds it.
struct PointScores {
  double square_error = 0, error = 0, crps = 0, variance = 0, brier = kNoScore;
  double forecast_anomaly = kNoScore, truth_anomaly = kNoScore;
  std::array<double, kScoredQuantiles.size()> quantiles{};
  size_t below = 0, equal = 0, foreseen = 0;
  bool happened = false, has_climatology = false;
};

// numpy's default: linear between the order statistics.
double quantile_of(std::span<const double> sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(place);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (place - static_cast<double>(low));
}

double pinball(double truth, double quantile, double share) {
  const double above = truth - quantile;
  return above >= 0 ? share * above : (share - 1) * above;
}

// sum over all pairs |x_i - x_j| of sorted values is 2 sum_i (2 i - M + 1) x_i.
double fair_crps(std::span<const double> sorted, double truth) {
  const auto members = static_cast<double>(sorted.size());
  double distance = 0, pairs = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    distance += std::abs(sorted[i] - truth);
    pairs += (2 * static_cast<double>(i) - members + 1) * sorted[i];
  }
  return sorted.size() == 1 ? distance : distance / members - pairs / (members * (members - 1));
}

// The scores of a point with a NaN or infinite member, as of a forecast that has diverged: every measure is NaN.
PointScores score_of_nan(double climatology) {
  PointScores point{.square_error = kNoScore, .error = kNoScore, .crps = kNoScore, .variance = kNoScore};
  point.quantiles.fill(kNoScore);
  point.has_climatology = !std::isnan(climatology);
  return point;
}

// `sorted`: the members' values, as they come, none of them NaN; they are sorted here.
PointScores score_point(std::span<double> sorted, double truth, double climatology) {
  PointScores point;
  const auto members = static_cast<double>(sorted.size());
  double mean = 0;
  for (const double value : sorted) mean += value / members;
  for (const double value : sorted) point.variance += (value - mean) * (value - mean);
  point.variance = sorted.size() == 1 ? 0 : point.variance / (members - 1);
  std::ranges::sort(sorted);
  point.error = mean - truth;
  point.square_error = point.error * point.error;
  point.crps = fair_crps(sorted, truth);
  for (size_t q = 0; q < kScoredQuantiles.size(); ++q)
    point.quantiles[q] = pinball(truth, quantile_of(sorted, kScoredQuantiles[q]), kScoredQuantiles[q]);
  for (const double value : sorted) {
    point.below += value < truth ? 1 : 0;
    point.equal += value == truth ? 1 : 0;
    point.foreseen += value > climatology ? 1 : 0;
  }
  point.happened = truth > climatology;
  point.has_climatology = !std::isnan(climatology);
  if (!point.has_climatology) return point;
  const double probability = static_cast<double>(point.foreseen) / members;
  point.brier = (probability - (point.happened ? 1 : 0)) * (probability - (point.happened ? 1 : 0));
  point.forecast_anomaly = mean - climatology, point.truth_anomaly = truth - climatology;
  return point;
}

class RegionSums {
 public:
  explicit RegionSums(size_t members) {
    scores_.ranks.assign(members + 1, 0.0);
    scores_.foreseen.assign(members + 1, 0.0);
    scores_.happened.assign(members + 1, 0.0);
  }

  void add(double weight, const PointScores& point) {
    weight_ += weight, scores_.points += 1;
    at(Measure::SquareError) += weight * point.square_error;
    at(Measure::Error) += weight * point.error;
    at(Measure::Absolute) += weight * std::abs(point.error);
    at(Measure::Crps) += weight * point.crps;
    at(Measure::Variance) += weight * point.variance;
    for (size_t q = 0; q < kScoredQuantiles.size(); ++q)
      scores_.measures[static_cast<size_t>(Measure::Quantile01) + q] += weight * point.quantiles[q];
    const double share = weight / static_cast<double>(point.equal + 1);
    for (size_t rank = point.below; rank <= point.below + point.equal; ++rank) scores_.ranks[rank] += share;
    if (!point.has_climatology) return;
    climate_weight_ += weight;
    at(Measure::Brier) += weight * point.brier;
    product_ += weight * point.forecast_anomaly * point.truth_anomaly;
    forecast_square_ += weight * point.forecast_anomaly * point.forecast_anomaly;
    truth_square_ += weight * point.truth_anomaly * point.truth_anomaly;
    scores_.foreseen[point.foreseen] += weight;
    if (point.happened) scores_.happened[point.foreseen] += weight;
  }

  FieldScores finish() {
    scores_.has_points = weight_ > 0, scores_.has_climatology = climate_weight_ > 0;
    for (double& value : scores_.measures) value /= weight_;  // NaN where there is no point
    at(Measure::Brier) *= weight_ / climate_weight_;
    at(Measure::Acc) = product_ / std::sqrt(forecast_square_ * truth_square_);
    for (double& value : scores_.ranks) value /= weight_;
    for (double& value : scores_.foreseen) value /= climate_weight_;
    for (double& value : scores_.happened) value /= climate_weight_;
    return std::move(scores_);
  }

 private:
  double& at(Measure measure) { return scores_.measures[static_cast<size_t>(measure)]; }

  FieldScores scores_;
  double weight_ = 0, climate_weight_ = 0, product_ = 0, forecast_square_ = 0, truth_square_ = 0;
};

}  // namespace

std::vector<FieldScores> score_field(const FieldCase& field, const std::vector<std::vector<double>>& weights) {
  const size_t points = field.truth.size(), members = field.members.size() / points;
  WELKIN_CHECK(members > 0 && field.members.size() == members * points, "members of whole fields");
  std::vector<RegionSums> sums(weights.size(), RegionSums(members));
  std::vector<double> values(members);
  for (size_t i = 0; i < points; ++i) {
    const auto truth = static_cast<double>(field.truth[i]);
    const bool counts = std::ranges::any_of(weights, [&](const auto& region) { return region[i] > 0; });
    if (std::isnan(truth) || !counts) continue;
    for (size_t m = 0; m < members; ++m) values[m] = static_cast<double>(field.members[m * points + i]);
    const double climatology = field.climatology.empty() ? kNoScore : static_cast<double>(field.climatology[i]);
    const bool is_finite = std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
    const PointScores point = !is_finite ? score_of_nan(climatology) : score_point(values, truth, climatology);
    for (size_t r = 0; r < weights.size(); ++r) {
      if (weights[r][i] > 0) sums[r].add(weights[r][i], point);
    }
  }
  std::vector<FieldScores> scores;
  for (RegionSums& sum : sums) scores.push_back(sum.finish());
  return scores;
}

}  // namespace welkin::train
