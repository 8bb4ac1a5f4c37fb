// SPDX-License-Identifier: Apache-2.0
#include "observe/report/thin_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace welkin::observe {
namespace {

std::vector<ScalarPoint> points_of(size_t count) {
  std::vector<ScalarPoint> points;
  for (size_t i = 0; i < count; ++i) points.push_back({static_cast<int64_t>(i), 0, std::sin(0.01 * static_cast<double>(i))});
  return points;
}

bool has(const std::vector<ScalarPoint>& points, int64_t step, double value) {
  return std::ranges::any_of(points, [&](const ScalarPoint& point) { return point.step == step && point.value == value; });
}

TEST(ThinCurve, AShortOneStaysAsItIs) { EXPECT_EQ(thinned(points_of(100), 100).size(), 100u); }

TEST(ThinCurve, LoneExtremesStayAtTheirSteps) {
  std::vector<ScalarPoint> points = points_of(100'000);
  points[40'001].value = 50;
  points[40'003].value = -50;
  points[77'777].value = 9;
  const auto kept = thinned(points, 500);
  EXPECT_LE(kept.size(), 500u);
  EXPECT_GE(kept.size(), 400u);
  EXPECT_TRUE(has(kept, 40'001, 50));
  EXPECT_TRUE(has(kept, 40'003, -50));
  EXPECT_TRUE(has(kept, 77'777, 9));
  EXPECT_EQ(kept.front().step, 0);
  EXPECT_EQ(kept.back().step, 99'999);
  EXPECT_TRUE(std::ranges::is_sorted(kept, {}, &ScalarPoint::step));
  for (const ScalarPoint& point : kept) EXPECT_EQ(point.value, points[static_cast<size_t>(point.step)].value) << "no mean";
}

TEST(ThinCurve, AValueThatIsNotFiniteIsNotForgotten) {
  std::vector<ScalarPoint> points = points_of(10'000);
  points[5'000].value = std::nan("");
  const auto kept = thinned(points, 100);
  EXPECT_LE(kept.size(), 100u);
  EXPECT_EQ(std::ranges::count_if(kept, [](const ScalarPoint& point) { return std::isnan(point.value); }), 1);
}

}  // namespace
}  // namespace welkin::observe
