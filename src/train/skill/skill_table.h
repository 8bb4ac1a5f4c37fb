// SPDX-License-Identifier: Apache-2.0
// Scores of one forecast, kept for every start, lead, channel and region, so that means over seasons, their confidence and paired
// differences come from the same numbers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "train/skill/bootstrap.h"
#include "train/skill/field_scores.h"

namespace welkin::train {

enum class Score : uint8_t {
  Rmse,
  Bias,
  Mae,
  Acc,
  Crps,
  Spread,
  SpreadSkill,
  Brier,
  Quantile01,
  Quantile05,
  Quantile95,
  Quantile99
};
inline constexpr std::array<std::string_view, 12> kScoreNames{"rmse",        "bias",        "mae",          "acc",
                                                              "crps",        "spread",      "spread_skill", "brier",
                                                              "quantile_01", "quantile_05", "quantile_95",  "quantile_99"};

struct SkillShape {
  int64_t starts = 0, leads = 0, channels = 0, regions = 0, members = 1;
};

// The place of a score: the channel, lead and region whose numbers it averages.
struct SkillPlace {
  int64_t lead = 0, channel = 0, region = 0;
};

class SkillTable {
 public:
  SkillTable(std::string name, const SkillShape& shape);

  const std::string& name() const { return name_; }
  const SkillShape& shape() const { return shape_; }

  // Sets one score per region. Cases that are not set, and regions without a point, count nowhere.
  void set(int64_t start, int64_t lead, int64_t channel, const std::vector<FieldScores>& scores);

  // True if there is a score of this start, and true if the forecast was not finite then.
  bool has(int64_t start, const SkillPlace& place) const;
  bool has_diverged(int64_t start, const SkillPlace& place) const;

  // Points with a truth, over all starts.
  int64_t points(const SkillPlace& place) const { return points_[cell(place)]; }

  // Over the given starts, each counting so often. NaN where there is no number, and where one of the starts has diverged: it
  // would be left out of the mean otherwise, and a model would win by its failures.
  double score(Score score, const SkillPlace& place, const std::vector<int64_t>& starts, const std::vector<double>& counts) const;

  // Means over all starts: shares of the ranks 0 to M; for the numbers of members that foresee the event, how often that was and
  // in which share of it it happened (NaN where it never was).
  std::vector<double> ranks(const SkillPlace& place) const { return mean_of(ranks_, place); }
  std::vector<double> foreseen(const SkillPlace& place) const { return mean_of(foreseen_, place); }
  std::vector<double> happened(const SkillPlace& place) const;

 private:
  size_t cell(const SkillPlace& place) const;
  double square_error(int64_t start, const SkillPlace& place) const;
  double mean(Measure measure, const SkillPlace& place, const std::vector<int64_t>& starts,
              const std::vector<double>& counts) const;
  std::vector<double> mean_of(const std::vector<std::vector<double>>& sums, const SkillPlace& place) const;

  std::string name_;
  SkillShape shape_;
  std::vector<double> values_;                                    // (start, lead, channel, region, measure)
  std::vector<std::vector<double>> ranks_, foreseen_, happened_;  // (lead, channel, region) sums over starts
  std::vector<int64_t> points_;                                   // (lead, channel, region)
  std::vector<double> cases_;                                     // of these sums
};

}  // namespace welkin::train
