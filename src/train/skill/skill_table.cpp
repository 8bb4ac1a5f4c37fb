// SPDX-License-Identifier: Apache-2.0
#include "train/skill/skill_table.h"

#include <cmath>
#include <limits>

namespace welkin::train {
namespace {

constexpr double kEmpty = std::numeric_limits<double>::quiet_NaN();
constexpr double kNotFinite = std::numeric_limits<double>::infinity();

void add_to(std::vector<double>& sum, const std::vector<double>& more) {
  sum.resize(more.size(), 0.0);
  for (size_t i = 0; i < more.size(); ++i) sum[i] += std::isnan(more[i]) ? 0.0 : more[i];
}

// The measure whose mean the score is computed from.
Measure measure_of(Score score) {
  switch (score) {
    case Score::Bias:
      return Measure::Error;
    case Score::Mae:
      return Measure::Absolute;
    case Score::Acc:
      return Measure::Acc;
    case Score::Crps:
      return Measure::Crps;
    case Score::Brier:
      return Measure::Brier;
    case Score::Quantile01:
      return Measure::Quantile01;
    case Score::Quantile05:
      return Measure::Quantile05;
    case Score::Quantile95:
      return Measure::Quantile95;
    case Score::Quantile99:
      return Measure::Quantile99;
    default:
      return score == Score::Spread ? Measure::Variance : Measure::SquareError;
  }
}

}  // namespace

SkillTable::SkillTable(std::string name, const SkillShape& shape) : name_(std::move(name)), shape_(shape) {
  const auto cells = static_cast<size_t>(shape.leads * shape.channels * shape.regions);
  values_.assign(static_cast<size_t>(shape.starts) * cells * kNumMeasures, kEmpty);
  ranks_.resize(cells), foreseen_.resize(cells), happened_.resize(cells);
  points_.assign(cells, 0), cases_.assign(cells, 0.0);
}

size_t SkillTable::cell(const SkillPlace& place) const {
  return static_cast<size_t>((place.lead * shape_.channels + place.channel) * shape_.regions + place.region);
}

void SkillTable::set(int64_t start, int64_t lead, int64_t channel, const std::vector<FieldScores>& scores) {
  for (int64_t region = 0; region < shape_.regions; ++region) {
    const FieldScores& from = scores[static_cast<size_t>(region)];
    const size_t at = cell({lead, channel, region});
    const size_t first = (static_cast<size_t>(start) * cases_.size() + at) * kNumMeasures;
    points_[at] += from.points;
    const bool has_diverged = from.has_points && !std::isfinite(from.measures[static_cast<size_t>(Measure::SquareError)]);
    for (size_t m = 0; m < kNumMeasures; ++m) values_[first + m] = has_diverged ? kNotFinite : from.measures[m];
    // If these starts were left out, ACC would be over other starts than RMSE.
    if (from.has_points && !from.has_climatology)
      for (const Measure measure : {Measure::Acc, Measure::Brier}) values_[first + static_cast<size_t>(measure)] = kNotFinite;
    if (has_diverged) continue;
    add_to(ranks_[at], from.ranks), add_to(foreseen_[at], from.foreseen), add_to(happened_[at], from.happened);
    cases_[at] += 1;
  }
}

double SkillTable::square_error(int64_t start, const SkillPlace& place) const {
  return values_[(static_cast<size_t>(start) * cases_.size() + cell(place)) * kNumMeasures +
                 static_cast<size_t>(Measure::SquareError)];
}

bool SkillTable::has(int64_t start, const SkillPlace& place) const { return !std::isnan(square_error(start, place)); }

bool SkillTable::has_diverged(int64_t start, const SkillPlace& place) const { return std::isinf(square_error(start, place)); }

double SkillTable::mean(Measure measure, const SkillPlace& place, const std::vector<int64_t>& starts,
                        const std::vector<double>& counts) const {
  double sum = 0, weight = 0;
  const size_t at = cell(place) * kNumMeasures + static_cast<size_t>(measure), stride = cases_.size() * kNumMeasures;
  for (size_t i = 0; i < starts.size(); ++i) {
    const double value = values_[static_cast<size_t>(starts[i]) * stride + at];
    if (counts[i] == 0 || std::isnan(value)) continue;
    if (value == kNotFinite) return kEmpty;
    sum += counts[i] * value, weight += counts[i];
  }
  return sum / weight;
}

// The spread is that of an ensemble without bias whose skill it should equal, hence the factor for a finite number of members (V.
// Fortin et al., J. Hydrometeor. 15 (2014) 1708).
double SkillTable::score(Score score, const SkillPlace& place, const std::vector<int64_t>& starts,
                         const std::vector<double>& counts) const {
  const double value = mean(measure_of(score), place, starts, counts);
  const auto members = static_cast<double>(shape_.members);
  switch (score) {
    case Score::Rmse:
      return std::sqrt(value);
    case Score::Spread:
      return shape_.members == 1 ? kEmpty : std::sqrt(value);
    case Score::SpreadSkill:
      if (shape_.members == 1) return kEmpty;
      return std::sqrt((members + 1) / members * mean(Measure::Variance, place, starts, counts) / value);
    default:
      return value;
  }
}

std::vector<double> SkillTable::mean_of(const std::vector<std::vector<double>>& sums, const SkillPlace& place) const {
  std::vector<double> means = sums[cell(place)];
  for (double& value : means) value /= cases_[cell(place)];
  return means;
}

std::vector<double> SkillTable::happened(const SkillPlace& place) const {
  std::vector<double> shares = happened_[cell(place)];
  for (size_t i = 0; i < shares.size(); ++i) shares[i] /= foreseen_[cell(place)][i];
  return shares;
}

}  // namespace welkin::train
