// SPDX-License-Identifier: Apache-2.0
// The data sets of a run whose pairs another program hands over: names, statistics, and the file of those held out.
#include "data/online/online_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include "core/error.h"
#include "data/sample/dataset.h"
#include "data_files.h"
#include "number_close.h"

namespace welkin::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two inputs, of which one is predicted, on a grid of 2 x 2.
config::RunConfig waves() {
  config::RunConfig config;
  config.model.model = "vit";
  config.model.img_size = {2, 2};
  config.data.dataset = "online";
  config.data.in_channels = {"height", "rain"};
  config.data.out_channels = {"height"};
  config.data.limit_nsamples_val = 1;
  config.data.limit_nsamples = 6;
  config.data.online_pairs = 4;
  config.loop.global_batch_size = 1;
  return config;
}

std::shared_ptr<PairStream> stream_of(const config::RunConfig& config, const std::vector<StreamedPair>& pairs) {
  auto stream = std::make_shared<PairStream>(stream_options(config));
  for (StreamedPair pair : pairs) EXPECT_EQ(stream->give(pair, std::chrono::milliseconds(0)), PairStream::Given::Taken);
  stream->end();
  return stream;
}

std::vector<StreamedPair> four_pairs() {
  std::vector<StreamedPair> pairs;
  for (int i = 0; i < 4; ++i) {
    const auto x = static_cast<float>(i);
    pairs.push_back({.input = {x, x + 1, x + 2, x + 3, 0, 1, 1, 0}, .target = {x + 4, x + 5, x + 6, NAN}});
  }
  return pairs;
}

TEST(OnlineData, ChannelsAreNormalisedByTheFirstPairs) {
  const config::RunConfig config = waves();
  const auto stream = stream_of(config, four_pairs());
  const auto training = open_online(config, Split::Train, {.channels = {{"rain", {.unit = "mm", .mean = 2, .std = 4}}}}, stream);
  const SampleSpec& spec = training->spec();
  EXPECT_EQ(training->size(), 6);
  EXPECT_THAT(spec.input.units, ElementsAre("", "mm"));
  EXPECT_THAT(spec.input.shape, ElementsAre(2, 2, 2));
  EXPECT_THAT(spec.earlier_target, ElementsAre(0));
  EXPECT_THAT(spec.known_input, ElementsAre(1));
  // Heights of the inputs and the targets: 0..6, 1..7, 2..8, 3..9.
  double sum = 0, squares = 0;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 7; ++j) sum += i + j, squares += (i + j) * (i + j);
  }
  const double mean = sum / 28, deviation = std::sqrt(squares / 28 - mean * mean);
  EXPECT_TRUE(welkin::tests::close(spec.input_mean.at(0), mean, kFp64, 64));
  EXPECT_TRUE(welkin::tests::close(spec.input_std.at(0), deviation, kFp64, 64));
  EXPECT_EQ(spec.input_mean.at(1), 2);
  EXPECT_EQ(spec.input_std.at(1), 4);
  EXPECT_THAT(spec.target_mean, ElementsAre(spec.input_mean.at(0)));
  EXPECT_THAT(spec.target_std, ElementsAre(spec.input_std.at(0)));
}

TEST(OnlineData, StatisticsAreOfValuesAfterTheLogarithm) {
  config::RunConfig config = waves();
  config.data.log_channels_in = {1};
  const auto stream = stream_of(config, four_pairs());
  const auto training = open_online(config, Split::Train, {}, stream);
  // Half of the values are log(2), as float32 has it, and half are 0.
  EXPECT_TRUE(welkin::tests::close(training->spec().input_mean.at(1), std::log(2.0) / 2, kFp32, 2));
  EXPECT_TRUE(welkin::tests::close(training->spec().input_std.at(1), std::log(2.0) / 2, kFp32, 2));
}

TEST(OnlineData, PairsHeldOutAreKeptForLaterRuns) {
  const tests::DataFolder folder;
  config::RunConfig config = waves();
  config.data.valid_data_path = (folder / "held").string();
  const OnlineFacts facts{.channels = {{"height", {.unit = "m"}}}, .latitude = {10, -10}, .longitude = {0, 180}};
  const auto stream = stream_of(config, four_pairs());
  const auto training = open_online(config, Split::Train, facts, stream);
  const auto held = open_online(config, Split::Valid, facts, stream);
  EXPECT_EQ(held->size(), 1);

  EXPECT_EQ(stream_options(config).held_out, 0);  // the next run holds none out
  const auto again = open_online(config, Split::Test, {}, nullptr);
  const SampleSpec &before = training->spec(), &after = again->spec();
  EXPECT_EQ(after.input_mean, before.input_mean);
  EXPECT_EQ(after.target_std, before.target_std);
  EXPECT_EQ(after.target.units, before.target.units);
  EXPECT_EQ(after.latitude, before.latitude);
  EXPECT_EQ(after.geometry, Geometry::Sphere);
  std::vector<float> input(8), target(4);
  again->read(again->plan({.index = 0}, whole(after)), {.input = input, .target = target});
  EXPECT_THAT(input, ElementsAre(0, 1, 2, 3, 0, 1, 1, 0));
  EXPECT_THAT(std::vector<float>(target.begin(), target.begin() + 3), ElementsAre(4, 5, 6));
  EXPECT_TRUE(std::isnan(target[3]));

  const auto next = stream_of(config, four_pairs());
  EXPECT_EQ(open_online(config, Split::Train, facts, next)->spec().input_mean, before.input_mean);
  for (const OnlineFacts& other :
       {OnlineFacts{.channels = {{"height", {.unit = "km"}}}}, OnlineFacts{.channels = {{"height", {.mean = 1, .std = 2}}}},
        OnlineFacts{.latitude = {20, 0}}}) {
    EXPECT_THROW(open_online(config, Split::Train, other, next), ConfigError);
  }

  config.data.in_channels = {"height", "snow"};
  try {
    open_online(config, Split::Valid, {}, nullptr);
    FAIL() << "pairs of other channels";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the pairs held out are not those of this run"));
  }
}

TEST(OnlineData, WhatDoesNotFitIsRefused) {
  const config::RunConfig config = waves();
  const auto says = [&](const OnlineFacts& facts, Split split, const char* text) {
    try {
      open_online(config, split, facts, nullptr);
      ADD_FAILURE() << "taken: " << text;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(text));
    }
  };
  says({.channels = {{"wind", {}}}}, Split::Train, "the run has no such channel: channel=wind");
  says({.latitude = {1, 2, 3}}, Split::Train, "an axis has another length than the fields: latitude=3, wanted=2");
  says({.latitude = {100, 0}}, Split::Train, "no place on the globe: latitude[0]=100, allowed=-90 to 90");
  says({.latitude = {10, std::nan("")}}, Split::Train, "no place on the globe: latitude[1]=");
  says({.longitude = {0, 1e5}}, Split::Train, "no place on the globe: longitude[1]=100000");
  says({}, Split::Train, "no program provides pairs");
  says({}, Split::Valid, "the pairs held out were not kept");
  EXPECT_THROW(open_online(config, Split::Train, {}, stream_of(config, {})), DataError);
}

}  // namespace
}  // namespace welkin::data
