// SPDX-License-Identifier: Apache-2.0
#include "data/sample/channels/channel_roles.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "data/sample/channels/static_channels.h"
#include "number_close.h"

namespace welkin::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

const std::vector<std::string> kChannels{"lsm", "t2m", "tp", "sst", "z500"};

TEST(ChannelRoles, InputAndTargetFollowFromThem) {
  const auto roles = channel_roles(kChannels, {"static", "prognostic", "diagnostic", "forcing", "prognostic"}, {});
  EXPECT_THAT(inputs_of(roles), ElementsAre(1, 4, 0, 3)) << "what is fed back comes first";
  EXPECT_THAT(targets_of(roles), ElementsAre(1, 4, 2));
  EXPECT_EQ(roles_text(kChannels, roles), "prognostic: t2m z500; forcing: sst; diagnostic: tp; static: lsm");
}

TEST(ChannelRoles, TheKeyHoldsOverTheFiles) {
  EXPECT_THAT(channel_roles(kChannels, {}, {}), IsEmpty());
  const auto roles = channel_roles(kChannels, {"static", "prognostic", "diagnostic", "forcing", "prognostic"},
                                   {"sst=prognostic", "z*=diagnostic"});
  EXPECT_THAT(targets_of(roles), ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(targets_of(channel_roles(kChannels, {}, {"lsm=static"})), ElementsAre(1, 2, 3, 4)) << "the others are prognostic";
}

TEST(ChannelRoles, WhatCannotBe) {
  EXPECT_THAT(
      [] { channel_roles(kChannels, {}, {"t2m=fixed"}); },
      ThrowsMessage<ConfigError>(HasSubstr("no role of a channel: key=roles, channel=t2m, role=fixed. Choose prognostic")));
  EXPECT_THAT([] { channel_roles(kChannels, {}, {"d2m=forcing"}); },
              ThrowsMessage<ConfigError>(HasSubstr("no channel of this name: key=roles, channel=d2m. There are: lsm, t2m")));
  const auto roles = channel_roles(kChannels, {}, {"lsm=static", "tp=diagnostic"});
  EXPECT_THAT(
      [&] {
        check_chosen(kChannels, roles, {1, 2}, {1, 0});
      },
      ThrowsMessage<ConfigError>(HasSubstr("chosen channels contradict their roles: input tp is diagnostic, target lsm is static "
                                           "(prognostic: t2m sst z500; diagnostic: tp; static: lsm)")));
  EXPECT_NO_THROW(check_chosen(kChannels, roles, {1, 0}, {2}));
  const std::vector<std::string> two{"t2m", "lsm"};
  EXPECT_THAT(
      [&] {
        check_chosen(two, channel_roles(two, {}, {"*=forcing"}), {0, 1}, {});
      },
      ThrowsMessage<ConfigError>(HasSubstr("the roles leave no channel to predict: forcing: t2m lsm")));
  EXPECT_THAT(
      [&] {
        check_chosen(two, channel_roles(two, {}, {"*=diagnostic"}), {}, {0, 1});
      },
      ThrowsMessage<ConfigError>(HasSubstr("the roles leave no channel to predict from: diagnostic: t2m lsm")));
}

TEST(ChannelRoles, OfOneNameAreOne) {
  EXPECT_THAT(
      [] {
        channel_roles(kChannels, {}, {"tp=forcing", "tp=diagnostic"});
      },
      ThrowsMessage<ConfigError>(HasSubstr("one channel has two values: key=roles, channel=tp, values=forcing and diagnostic")));
  EXPECT_NO_THROW(channel_roles(kChannels, {}, {"tp=forcing", "tp=forcing"}));
  EXPECT_EQ(
      channel_roles(kChannels, {},
                    {"*=forcing", "tp=diagnostic"})[static_cast<size_t>(std::ranges::find(kChannels, "tp") - kChannels.begin())],
      ChannelRole::Diagnostic)
      << "a name holds over a pattern before it";
}

TEST(StaticChannels, AreAWindowWithTheirOwnStatistics) {
  constexpr float kHole = std::numeric_limits<float>::quiet_NaN();
  StaticFields fields{.names = {"lsm", "z"},
                      .units = {"1", "m"},
                      .height = 2,
                      .width = 3,
                      .values = {0, 1, 1, 0, 0, 1, 10, 20, 30, 40, kHole, 50},
                      .mean = {},
                      .std = {}};
  fields.add_statistics("a file");
  EXPECT_THAT(fields.mean, ElementsAre(0, 30)) << "a mask stays as it is";
  EXPECT_EQ(fields.std[0], 1);
  EXPECT_TRUE(welkin::tests::close(fields.std[1], std::sqrt(200.0), kFp64, 8));
  const StaticChannels channels(fields, 0, 2);
  std::vector<float> out(8);
  channels.fill(0, {.begin = {0, 0, 0}, .extent = {2, 2, 1}}, out);
  EXPECT_THAT(out, ElementsAre(1, 0, 1, 0, 30, 10, 50, 40)) << "columns go on at the first one";
  channels.fill(0, {.begin = {1, 2, 0}, .extent = {1, 1, 1}}, std::span(out).first(2));
  EXPECT_EQ(out[1], 30) << "a point without a value has the mean";
}

}  // namespace
}  // namespace welkin::data
