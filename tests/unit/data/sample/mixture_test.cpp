// SPDX-License-Identifier: Apache-2.0
// Several data sets as one: shares of an epoch, which samples it draws, and what is refused.
#include "data/sample/mixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <span>

#include "core/error.h"
#include "data/sample/sampler.h"

namespace welkin::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

// The value of a sample is its number.
class Numbers : public Dataset {
 public:
  Numbers(int64_t size, float first, std::string channel = "u") : size_(size), first_(first) {
    spec_.input = spec_.target = {{std::move(channel)}, {"m"}, {1, 1, 1}};
    spec_.latitude = {10};
    spec_.calendar = "noleap";
  }
  int64_t size() const override { return size_; }
  const SampleSpec& spec() const override { return spec_; }
  SamplePlan plan(SampleKey key, const Region& wanted) const override { return {.index = key.index, .region = wanted}; }
  void read(const SamplePlan& plan, SampleView out) const override {
    for (const std::span<float> view : {out.input, out.target}) {
      if (!view.empty()) view[0] = first_ + static_cast<float>(plan.index);
    }
  }
  std::optional<int64_t> following(int64_t index) const override {
    return index + 1 < size_ ? std::optional(index + 1) : std::nullopt;
  }
  std::vector<FileFingerprint> fingerprints() const override { return {{.name = "2000.h5", .bytes = 1, .hash = 2}}; }
  SampleSpec& change() { return spec_; }

 private:
  int64_t size_;
  float first_;
  SampleSpec spec_;
};

std::vector<MixturePart> two(int64_t small, double small_weight, int64_t large, double large_weight) {
  std::vector<MixturePart> parts;
  parts.push_back({.name = "small", .weight = small_weight, .dataset = std::make_unique<Numbers>(small, 0.0F)});
  parts.push_back({.name = "large", .weight = large_weight, .dataset = std::make_unique<Numbers>(large, 1000.0F)});
  return parts;
}

float value_of(const Dataset& dataset, SampleKey key) {
  std::vector<float> value(1);
  dataset.read(dataset.plan(key, {}), {.input = value, .target = {}});
  return value[0];
}

// How often each value comes in an epoch.
std::map<float, int> epoch_of(const Mixture& mixture, int64_t epoch) {
  const Sampler sampler(mixture.size(), Order::Shuffled, 7);
  std::map<float, int> count;
  for (int64_t position = 0; position < mixture.size(); ++position) ++count[value_of(mixture, sampler.at(epoch, position))];
  return count;
}

TEST(MixtureTest, SharesAreByWeightAndWholeInAll) {
  EXPECT_THAT(mixture_shares(10, {1, 1}), ElementsAre(5, 5));
  EXPECT_THAT(mixture_shares(10, {3, 1}), ElementsAre(8, 2)) << "the earlier of equal fractions";
  EXPECT_THAT(mixture_shares(7, {1, 1, 1}), ElementsAre(3, 2, 2));
  EXPECT_THAT(mixture_shares(1, {0.1, 0.9}), ElementsAre(0, 1));
}

TEST(MixtureTest, ASmallSetGivesEachSampleEquallyOftenAndALargeOneAChoice) {
  const Mixture mixture(two(5, 1, 35, 1), Mixture::Order::Drawn);
  ASSERT_EQ(mixture.size(), 40);
  const auto first = epoch_of(mixture, 0), second = epoch_of(mixture, 1);
  int of_small = 0, of_large = 0;
  for (const auto& [value, count] : first) (value < 1000 ? of_small : of_large) += count;
  EXPECT_EQ(of_small, 20);
  EXPECT_EQ(of_large, 20);
  for (float value = 0; value < 5; ++value) EXPECT_EQ(first.at(value), 4) << value;
  EXPECT_NE(first, second) << "another choice of the large set";
  EXPECT_EQ(first, epoch_of(mixture, 0)) << "a function of seed, epoch and position";
}

TEST(MixtureTest, WeightsThatAreTheSizesGiveEachSampleOnce) {
  const Mixture mixture(two(5, 5, 35, 35), Mixture::Order::Drawn);
  const auto epoch = epoch_of(mixture, 3);
  EXPECT_THAT(epoch, SizeIs(40));
  for (const auto& [value, count] : epoch) EXPECT_EQ(count, 1) << value;
}

TEST(MixtureTest, AnEpochMayBeShorter) { EXPECT_EQ(Mixture(two(5, 1, 35, 1), Mixture::Order::Drawn, 12).size(), 12); }

TEST(MixtureTest, ValidationTakesEverySampleInOrder) {
  const Mixture mixture(two(3, 9, 2, 1), Mixture::Order::EverySample);
  std::vector<float> values;
  for (int64_t index = 0; index < mixture.size(); ++index) values.push_back(value_of(mixture, {index, 99}));
  EXPECT_THAT(values, ElementsAre(0, 1, 2, 1000, 1001));
  EXPECT_EQ(mixture.following(3), 4);
  EXPECT_EQ(mixture.following(2), std::nullopt) << "the next sample is of another set";
  EXPECT_EQ(mixture.fingerprints()[1].name, "large/2000.h5");
  EXPECT_THAT(mixture.location(mixture.plan({4, 0}, {})), HasSubstr("dataset=large, index=1"));
}

// What a sample of several steps has as targets, its own first.
std::vector<float> targets_of(const Dataset& dataset, SampleKey key) {
  std::vector<float> targets(dataset.spec().target.channels.size());
  dataset.read(dataset.plan(key, {}), {.input = {}, .target = targets});
  return targets;
}

TEST(MixtureTest, SamplesOfSeveralStepsAreThoseOfTheirSet) {
  const Mixture mixture(two(5, 1, 35, 1), Mixture::Order::Drawn, 24);
  const auto three = mixture.of_steps(3, 3);
  EXPECT_THAT(three->spec().target.channels, ElementsAre("u", "u[+2]", "u[+3]"));
  EXPECT_EQ(three->size(), 24) << "the limit of a mixture";
  EXPECT_EQ(mixture.of_steps(1, 1)->size(), 24);
  const auto whole = Mixture(two(5, 1, 35, 1), Mixture::Order::Drawn).of_steps(2, 3);
  EXPECT_EQ(whole->size(), 3 + 33) << "that have three steps of truth";
  const Sampler sampler(three->size(), Order::Shuffled, 7);
  int of_large = 0;
  for (int64_t position = 0; position < three->size(); ++position) {
    const SampleKey key = sampler.at(1, position);
    const std::vector<float> found = targets_of(*three, key);
    EXPECT_THAT(found, ElementsAre(found[0], found[0] + 1, found[0] + 2));
    EXPECT_TRUE(found[2] < 5 || found[0] >= 1000) << "of one set: " << found[0];
    EXPECT_EQ(targets_of(*mixture.of_steps(2, 3), key).front(), found.front()) << "a curriculum has the same samples throughout";
    of_large += found[0] >= 1000 ? 1 : 0;
  }
  EXPECT_EQ(of_large, 12) << "by weight";
}

TEST(MixtureTest, SetsThatDifferAreRefused) {
  const auto mixing = [](const auto& change) {
    return [change] {
      auto parts = two(3, 1, 4, 1);
      change(dynamic_cast<Numbers&>(*parts[1].dataset).change());
      Mixture(std::move(parts), Mixture::Order::Drawn);
    };
  };
  EXPECT_THAT(mixing([](SampleSpec& spec) { spec.input.channels = {"v"}; }),
              ThrowsMessage<DataError>(HasSubstr("differ: dataset=small, dataset=large, in=input channels: u and v")));
  EXPECT_THAT(mixing([](SampleSpec& spec) { spec.target.units = {"km"}; }),
              ThrowsMessage<DataError>(HasSubstr("in=units of u: m and km")));
  EXPECT_THAT(mixing([](SampleSpec& spec) { spec.latitude = {11}; }),
              ThrowsMessage<DataError>(HasSubstr("in=latitudes: 10 to 10 and 11 to 11")));
  EXPECT_THAT(mixing([](SampleSpec& spec) { spec.calendar = "360_day"; }),
              ThrowsMessage<DataError>(HasSubstr("in=calendars: noleap and 360_day")));
  EXPECT_NO_THROW(mixing([](SampleSpec& spec) { spec.calendar.clear(); })()) << "files without times";
  EXPECT_THAT(mixing([](SampleSpec& spec) { spec.target_mean = {1}; }), ThrowsMessage<DataError>(HasSubstr("in=normalisation")));
  EXPECT_THAT([] { Mixture(two(0, 1, 4, 1), Mixture::Order::Drawn); },
              ThrowsMessage<DataError>(HasSubstr("has no samples: dataset=small")));
}

}  // namespace
}  // namespace welkin::data
