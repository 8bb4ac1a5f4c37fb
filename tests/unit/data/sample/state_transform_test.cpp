// SPDX-License-Identifier: Apache-2.0
// Inputs and targets of the same quantity that have other numbers.
#include "data/sample/state_transform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace welkin::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

SampleSpec weather() {
  SampleSpec spec;
  spec.input = {{"t", "rain"}, {}, {2, 2, 2}};
  spec.target = {{"rain", "t"}, {}, {2, 2, 2}};
  spec.input_mean = {280, 1}, spec.input_std = {10, 2};
  spec.target_mean = {1, 280}, spec.target_std = {2, 10};
  spec.input_log = {1}, spec.target_log = {0};
  return spec;
}

TEST(StateTransform, IsTheSameWhereEachChannelIsTransformedAlike) {
  SampleSpec spec = weather();
  spec.input_log_eps = {1};
  EXPECT_EQ(difference_of_transforms(spec, 0, 1), "") << "an eps of 1 is the default";
  EXPECT_EQ(difference_of_transforms(spec, 1, 0), "");
  check_same_transforms(spec, {1, 0}, "rollout", "no");
}

TEST(StateTransform, DiffersInLogarithmClipMeanAndDeviation) {
  SampleSpec spec = weather();
  spec.input_log_eps = {0.5};
  EXPECT_EQ(difference_of_transforms(spec, 0, 1),
            "logarithm of the input (log_channels_in)=ln(1 + x / 0.5), of the target (log_channels_out)=ln(1 + x / 1)");
  spec = weather();
  spec.target_log = {};
  EXPECT_THAT(difference_of_transforms(spec, 0, 1), HasSubstr("of the target (log_channels_out)=none"));
  spec = weather();
  spec.input_clip = {0, 5};
  EXPECT_EQ(difference_of_transforms(spec, 0, 1), "clip_in=[0, 5], clip_out=none");
  spec = weather();
  spec.target_std = {2, 11};
  EXPECT_EQ(difference_of_transforms(spec, 1, 0), "mean and deviation of the input=280 and 10, of the target=280 and 11");
}

TEST(StateTransform, TheErrorNamesChannelsAndKeys) {
  SampleSpec spec = weather();
  spec.target_log = {};
  const auto check = [&](const std::vector<int64_t>& inputs) {
    check_same_transforms(spec, inputs, "rollout", "the prediction is not the next input");
  };
  check({-1, 0});
  EXPECT_THAT(
      [&] {
        check({1, 0});
      },
      ThrowsMessage<ConfigError>(AllOf(HasSubstr("[rollout] the prediction is not the next input, input and target of a "
                                                 "channel are transformed differently: channel=rain, logarithm"),
                                       HasSubstr("Train with the same clip_in and clip_out"))));
}

TEST(StateTransform, WhatIsClippedAwayDoesNotFollow) {
  SampleSpec spec = weather();
  EXPECT_TRUE(follows_from_input(spec));
  spec.target_clip = {0, 5};
  EXPECT_TRUE(follows_from_input(spec));
  spec.input_clip = {0, 6};
  EXPECT_TRUE(follows_from_input(spec));
  spec.target_clip = {0, 7};
  EXPECT_FALSE(follows_from_input(spec));
  spec.target_clip = {};
  EXPECT_FALSE(follows_from_input(spec));
}

}  // namespace
}  // namespace welkin::data
