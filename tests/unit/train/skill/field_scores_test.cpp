// SPDX-License-Identifier: Apache-2.0
// Scores of a field against the formulas of the papers, written down plainly; regions; the bootstrap.
// tests/e2e/forecast/forecast_scores_test.py compares them with other people's code.
#include "train/skill/field_scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "core/philox.h"
#include "number_close.h"
#include "train/skill/bootstrap.h"
#include "train/skill/regions.h"
#include "train/skill/skill_table.h"

namespace welkin::train {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using tests::close;
using tests::within;

constexpr size_t kMembers = 5, kPoints = 24;
constexpr float kGap = std::numeric_limits<float>::quiet_NaN();

std::vector<float> normals(size_t count, uint64_t key) {
  std::vector<float> values;
  for (uint64_t i = 0; i < count; ++i) {
    const PhiloxBlock words = philox(key, 0, i);
    values.push_back(static_cast<float>(normal_pair(words[0], words[1])[0]));
  }
  return values;
}

double measure(const FieldScores& scores, Measure which) { return scores.measures[static_cast<size_t>(which)]; }

struct Example {
  std::vector<float> members = normals(kMembers * kPoints, 1), truth = normals(kPoints, 2), climatology = normals(kPoints, 3);
  std::vector<double> weights = std::vector<double>(kPoints);
  Example() { std::iota(weights.begin(), weights.end(), 0.0); }  // the first point lies outside
  FieldScores score() const { return score_field({members, truth, climatology}, {weights}).front(); }

  template <typename Point>
  double mean(const Point& of_point) const {
    double sum = 0, weight = 0;
    for (size_t i = 0; i < kPoints; ++i) {
      if (std::isnan(truth[i])) continue;
      std::vector<double> x;
      for (size_t m = 0; m < kMembers; ++m) x.push_back(static_cast<double>(members[m * kPoints + i]));
      sum += weights[i] * of_point(x, static_cast<double>(truth[i])), weight += weights[i];
    }
    return sum / weight;
  }
};

double mean_of(const std::vector<double>& x) { return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size()); }

double plain_crps(const std::vector<double>& x, double t) {
  double distance = 0, pairs = 0;
  for (const double a : x) {
    distance += std::abs(a - t) / static_cast<double>(x.size());
    for (const double b : x) pairs += std::abs(a - b) / (2.0 * static_cast<double>(x.size() * (x.size() - 1)));
  }
  return distance - pairs;
}

TEST(FieldScores, AreThoseOfTheFormulas) {
  Example example;
  example.truth[7] = kGap;
  const FieldScores got = example.score();
  EXPECT_TRUE(close(measure(got, Measure::Crps), example.mean(plain_crps), kFp64, 256));
  EXPECT_TRUE(close(measure(got, Measure::SquareError),
                    example.mean([](const auto& x, double t) { return (mean_of(x) - t) * (mean_of(x) - t); }), kFp64, 256));
  EXPECT_TRUE(close(measure(got, Measure::Absolute),
                    example.mean([](const auto& x, double t) { return std::abs(mean_of(x) - t); }), kFp64, 256));
  EXPECT_TRUE(close(measure(got, Measure::Variance), example.mean([](const auto& x, double) {
    double sum = 0;
    for (const double value : x) sum += (value - mean_of(x)) * (value - mean_of(x)) / (kMembers - 1);
    return sum;
  }),
                    kFp64, 256));
  EXPECT_TRUE(tests::rounds_to(std::accumulate(got.ranks.begin(), got.ranks.end(), 0.0), 1, 1, kFp64, 64));
}

TEST(FieldScores, OfOneMemberAreThoseOfAForecast) {
  Example example;
  example.members.resize(kPoints);
  const FieldScores got = score_field({example.members, example.truth, {}}, {example.weights}).front();
  EXPECT_EQ(measure(got, Measure::Crps), measure(got, Measure::Absolute));
  EXPECT_EQ(measure(got, Measure::Variance), 0);
  EXPECT_TRUE(std::isnan(measure(got, Measure::Acc)));
  EXPECT_TRUE(std::isnan(measure(got, Measure::Brier)));
}

TEST(FieldScores, TiesAreSharedOut) {
  const std::vector<float> members{0, 0, 1}, truth{0};
  const FieldScores got = score_field({members, truth, {}}, {{1.0}}).front();
  EXPECT_THAT(got.ranks, ::testing::ElementsAre(1.0 / 3, 1.0 / 3, 1.0 / 3, 0));
}

TEST(FieldScores, AFieldWithoutTruthHasNone) {
  Example example;
  std::fill(example.truth.begin(), example.truth.end(), kGap);
  EXPECT_THAT(example.score().measures, Each(::testing::IsNan()));
}

TEST(Regions, WeighCellsByTheirArea) {
  const std::vector<double> latitude{60, 0, -60}, longitude{0, 90, 180, 270};
  const auto global = region_weights(parse_regions("global")[0], latitude, longitude);
  EXPECT_TRUE(close(global[0], 1 - std::sin(std::acos(-1.0) / 6), kFp64, 16));
  EXPECT_TRUE(close(std::accumulate(global.begin(), global.end(), 0.0), 8, kFp64, 64));
  const auto box = region_weights(parse_regions("b=-10:70:-100:10")[0], latitude, longitude);
  EXPECT_GT(box[0], 0);
  EXPECT_EQ(box[1], 0);
  EXPECT_GT(box[3], 0);
  EXPECT_EQ(box[8], 0);
  for (const char* bad : {"europe", "x=1:2:3", "x=3:1:0:1", ""}) EXPECT_THROW(parse_regions(bad), ConfigError) << bad;
  try {
    region_weights(parse_regions("hole=10:20:0:1")[0], latitude, longitude);
    ADD_FAILURE();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("region=hole"));
  }
}

TEST(Resampling, HasTheSpreadOfAMean) {
  const auto values = normals(400, 9);
  const Resampling drawn(400, 2000, 1, 5);
  const Interval interval = drawn.interval([&](const std::vector<double>& counts) {
    double sum = 0, weight = 0;
    for (size_t i = 0; i < counts.size(); ++i) sum += counts[i] * static_cast<double>(values[i]), weight += counts[i];
    return sum / weight;
  });
  double square = 0;
  for (const float value : values) square += std::pow(static_cast<double>(value) - interval.value, 2) / 400;
  const double wanted = 2 * 1.96 * std::sqrt(square / 400);
  EXPECT_TRUE(within(interval.high - interval.low, wanted, {0.1 * wanted, "2000 replicates"}));
  const Resampling blocks(10, 50, 4, 5);
  blocks.interval([](const std::vector<double>& counts) {
    return std::accumulate(counts.begin(), counts.end(), 0.0) == 10 ? 0.0 : std::nan("");
  });
  EXPECT_TRUE(std::isnan(Resampling(3, 0, 1, 1).interval([](const auto&) { return 1.0; }).low));
}

TEST(SkillTable, ScoresAreOfMeansOverStarts) {
  SkillTable table("forecast", {.starts = 2, .leads = 1, .channels = 1, .regions = 1, .members = 4});
  FieldScores one, two;
  one.measures.fill(1), two.measures.fill(3);
  table.set(0, 0, 0, {one}), table.set(1, 0, 0, {two});
  EXPECT_TRUE(close(table.score(Score::Rmse, {}, {0, 1}, {1, 1}), std::sqrt(2.0), kFp64, 8));
  EXPECT_TRUE(close(table.score(Score::SpreadSkill, {}, {0, 1}, {1, 1}), std::sqrt(1.25), kFp64, 8));
  EXPECT_EQ(table.score(Score::Bias, {}, {0, 1}, {0, 2}), 3);
}

// A forecast that has diverged has no good score because its worst points are left out.
TEST(FieldScores, AMemberThatIsNanMakesEveryMeasureNan) {
  Example example;
  example.members[kPoints + 3] = kGap;
  const FieldScores scores = example.score();
  for (const double value : scores.measures) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace welkin::train
