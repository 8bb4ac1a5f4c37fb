// SPDX-License-Identifier: Apache-2.0
// Samples of several steps against the single steps that they are made of.
#include "data/sample/sequences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "core/error.h"

namespace welkin::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

constexpr int64_t kTimes = 6;

// Two series of six times. A value says its time, its channel and its point: input (known, u, v), target (v, u, rain).
class TwoSeries : public Dataset {
 public:
  TwoSeries() {
    spec_.input = {{"sun", "u", "v"}, {"W", "m", "m"}, {3, 2, 2}};
    spec_.target = {{"v", "u", "rain"}, {"m", "m", "mm"}, {3, 2, 2}};
    spec_.geometry = Geometry::Sphere;
    spec_.earlier_target = {2, 1, -1};
    spec_.known_input = {0};
    spec_.input_mean = {1, 2, 3}, spec_.input_std = {4, 5, 6};
    spec_.target_mean = {3, 2, 7}, spec_.target_std = {6, 5, 8};
    spec_.input_log = {0}, spec_.input_log_eps = {0.5};
    spec_.target_log = {2}, spec_.target_log_eps = {0.25};
    spec_.input_fill = {9, 10, 11};
  }
  int64_t size() const override { return 2 * (kTimes - 1); }
  const SampleSpec& spec() const override { return spec_; }
  SamplePlan plan(SampleKey key, const Region& wanted) const override {
    SamplePlan plan;
    plan.index = key.index;
    plan.region = wanted;
    return plan;
  }
  void read(const SamplePlan& plan, SampleView out) const override {
    const int64_t time = plan.index / (kTimes - 1) * 100 + plan.index % (kTimes - 1);
    for (size_t i = 0; i < out.input.size(); ++i) out.input[i] = value(i < 4 ? time + 1 : time, i < 4 ? 0 : i / 4, i % 4);
    for (size_t i = 0; i < out.target.size(); ++i) out.target[i] = value(time + 1, 10 + i / 4, i % 4);
  }
  std::optional<int64_t> following(int64_t index) const override {
    return index % (kTimes - 1) < kTimes - 2 ? std::optional(index + 1) : std::nullopt;
  }
  static float value(int64_t time, size_t channel, size_t point) {
    return static_cast<float>(1000 * time + 10 * static_cast<int64_t>(channel) + static_cast<int64_t>(point));
  }

 private:
  SampleSpec spec_;
};

std::shared_ptr<const std::vector<int64_t>> starts_of(const Dataset& one, int64_t steps) {
  return std::make_shared<const std::vector<int64_t>>(sequence_starts(one, steps));
}

TEST(Sequences, BeginWhereEnoughStepsFollow) {
  const TwoSeries one;
  EXPECT_THAT(sequence_starts(one, 3), ElementsAre(0, 1, 2, 5, 6, 7));
  EXPECT_EQ(sequence_starts(one, 1).size(), 10U);
  EXPECT_THAT([&] { sequence_starts(one, 6); },
              ThrowsMessage<ConfigError>("[data] no sample has so many steps of truth after it: multistep=6, longest=5. Ask for "
                                         "fewer steps, or give longer files."));
}

TEST(Sequences, HoldTheFirstInputWhatIsKnownAndAllTargets) {
  const TwoSeries one;
  const Sequences three(one, 3, starts_of(one, 3));
  ASSERT_EQ(three.size(), 6);
  std::vector<float> input(5 * 4), target(9 * 4);
  three.read(three.plan({.index = 4, .draw = 0}, {.extent = {2, 2, 1}}), {.input = input, .target = target});  // time 101
  for (size_t p = 0; p < 4; ++p) {
    EXPECT_EQ(input[p], TwoSeries::value(102, 0, p));
    EXPECT_EQ(input[4 + p], TwoSeries::value(101, 1, p));
    EXPECT_EQ(input[8 + p], TwoSeries::value(101, 2, p));
    EXPECT_EQ(input[12 + p], TwoSeries::value(103, 0, p)) << "the sun of the second step";
    EXPECT_EQ(input[16 + p], TwoSeries::value(104, 0, p));
    for (size_t c = 0; c < 9; ++c)
      EXPECT_EQ(target[4 * c + p], TwoSeries::value(102 + static_cast<int64_t>(c / 3), 10 + c % 3, p));
  }
}

// With the starts of longer sequences, so that all parts of a curriculum have the same samples.
TEST(Sequences, OfOneStepAreTheSamples) {
  const TwoSeries one;
  const Sequences same(one, 1, starts_of(one, 3));
  EXPECT_EQ(same.size(), 6);
  EXPECT_EQ(same.spec().input.channels, one.spec().input.channels);
  std::vector<float> got(12), wanted(12), target(12), wanted_target(12);
  same.read(same.plan({.index = 3, .draw = 0}, {.extent = {2, 2, 1}}), {.input = got, .target = target});
  one.read(one.plan({.index = 5, .draw = 0}, {.extent = {2, 2, 1}}), {.input = wanted, .target = wanted_target});
  EXPECT_EQ(got, wanted);
  EXPECT_EQ(target, wanted_target);
}

// Transforms go by channels.
TEST(Sequences, RepeatWhatIsKnownOfChannels) {
  const TwoSeries one;
  const SampleSpec spec = sequence_spec(one.spec(), 3);
  EXPECT_THAT(spec.input.channels, ElementsAre("sun", "u", "v", "sun[+2]", "sun[+3]"));
  EXPECT_THAT(spec.target.channels, ElementsAre("v", "u", "rain", "v[+2]", "u[+2]", "rain[+2]", "v[+3]", "u[+3]", "rain[+3]"));
  EXPECT_THAT(spec.input.shape, ElementsAre(5, 2, 2));
  EXPECT_THAT(spec.target.shape, ElementsAre(9, 2, 2));
  EXPECT_THAT(spec.input_mean, ElementsAre(1, 2, 3, 1, 1));
  EXPECT_THAT(spec.input_std, ElementsAre(4, 5, 6, 4, 4));
  EXPECT_THAT(spec.input_fill, ElementsAre(9, 10, 11, 9, 9));
  EXPECT_THAT(spec.input_log, ElementsAre(0, 3, 4));
  EXPECT_THAT(spec.input_log_eps, ElementsAre(0.5, 0.5, 0.5));
  EXPECT_THAT(spec.target_std, ElementsAre(6, 5, 8, 6, 5, 8, 6, 5, 8));
  EXPECT_THAT(spec.target_log, ElementsAre(2, 5, 8));
  EXPECT_THAT(spec.target_log_eps, ElementsAre(0.25, 0.25, 0.25));
  EXPECT_EQ(spec.input.units.back(), "W");
  EXPECT_EQ(one.spec().input.shape, (std::vector<int64_t>{3, 2, 2})) << "that of one step stays";
}

TEST(Sequences, KnowWhatIsFedBack) {
  SampleSpec spec;
  spec.input.shape = {7, 2, 2}, spec.target.shape = {2, 2, 2};
  spec.newest_input_channel = 3;
  EXPECT_THAT(earlier_channels(spec), ElementsAre(3, 4));
  EXPECT_THAT(known_channels(spec), ElementsAre(5, 6)) << "those behind the targets";
  EXPECT_TRUE(is_state_of_target(spec));
  spec.earlier_target = {-1, -1};
  EXPECT_THAT(known_channels(spec), IsEmpty());
  EXPECT_FALSE(is_state_of_target(spec));
  spec.earlier_target = {};
  spec.geometry = Geometry::PeriodicBox;
  EXPECT_FALSE(is_state_of_target(spec));
}

}  // namespace
}  // namespace welkin::data
