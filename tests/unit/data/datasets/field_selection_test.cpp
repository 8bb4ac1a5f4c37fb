// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/field_selection.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "data/datasets/era5_dataset.h"
#include "data/formats/npy_file.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

FieldFacts facts_of(int64_t channels, int64_t height, int64_t width) {
  FieldFacts facts;
  facts.path = "/data/2001.h5";
  facts.channels = channels, facts.height = height, facts.width = width;
  return facts;
}

std::string left_out(const FieldFacts& facts, const Era5Options& options) {
  return left_out_text(facts, select_fields(facts, options), options);
}

TEST(FieldSelection, SaysWhatIsLeftOut) {
  FieldFacts facts = facts_of(3, 4, 6);
  facts.channel_names = {"t", "u", "v"};
  facts.latitude = {90, 30, -30, -90};
  facts.longitude = {0, 60, 120, 180, 240, 300};
  EXPECT_EQ(left_out(facts, {}), "");
  EXPECT_EQ(left_out(facts, {.height = 3, .width = 4, .in_channels = 1, .out_channels = 1}),
            "part of the data is left out: rows=1 of 4 (3, latitude -90), columns=2 of 6 (4 to 5, longitude 240 to 300), "
            "channels=2 of 3 (u, v). To choose: img_size and crop, n_in_channels and n_out_channels, or in_channels and "
            "out_channels");
  EXPECT_EQ(left_out(facts, {.in_channels = 3, .out_channels = 1}), "") << "an input that is not predicted is used";
  EXPECT_THAT(left_out(facts_of(2, 5, 4), {.height = 2}), HasSubstr("left out: rows=3 of 5 (2 to 4). To choose"));
  EXPECT_THAT(left_out(facts_of(30, 1, 1), {.in_channels = 1, .out_channels = 1}),
              HasSubstr("channels=29 of 30 (channel1, channel2, "));
}

TEST(FieldSelection, WhatKeysChooseIsNoWarning) {
  const FieldFacts facts = facts_of(3, 4, 6);
  const Era5Options options{.height = 2, .width = 3, .crop = {{1, 2}}, .in_names = {"channel2"}, .out_names = {"channel2"}};
  EXPECT_EQ(left_out(facts, options), "");
  EXPECT_EQ(chosen_text(facts, select_fields(facts, options), options),
            "Chosen of the data: rows 1 to 2; columns 2 to 4; input channels channel2; target channels channel2");
  EXPECT_EQ(chosen_text(facts, select_fields(facts, {}), {}), "");
}

TEST(FieldSelection, MisfitsAreNamed) {
  const FieldFacts facts = facts_of(2, 4, 6);
  EXPECT_THAT(
      [&] {
        select_fields(facts, {.height = 3, .width = 6, .crop = {{2, 0}}});
      },
      ThrowsMessage<DataError>(HasSubstr("the crop leaves the grid: path=/data/2001.h5, grid=4 x 6, crop=[2, 0], "
                                         "img_size=3 x 6. Set crop to at most [1, 0], or a smaller img_size.")));
  EXPECT_THAT([&] { select_fields(facts, {.crop = {{4, 0}}}); }, ThrowsMessage<DataError>(HasSubstr("the crop leaves the grid")));
  EXPECT_THAT([&] { select_fields(facts, {.in_names = {"t2m"}}); },
              ThrowsMessage<ConfigError>(HasSubstr("[data] the file has no such channel: in_channels=t2m, path=/data/2001.h5. "
                                                   "Choose from: channel0, channel1.")));
}

TEST(FieldSelection, RunsAreChannelsInARow) {
  const auto runs = channel_runs({4, 5, 6, 1, 0, 1});
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].first, 4);
  EXPECT_EQ(runs[0].count, 3);
  EXPECT_EQ(runs[1].count, 1);
  EXPECT_EQ(runs[2].first, 0);
  EXPECT_EQ(runs[2].count, 2);
}

// value = ((t * C + c) * H + h) * W + w
class SelectedFields : public ::testing::Test {
 protected:
  SelectedFields() {
    write_field_file(folder_ / "2001.h5", {.channels = 3, .names = {"t", "u", "v"}});
    write_npy(folder_ / "means.npy", {1, 3, 1, 1}, std::vector<float>{1, 2, 3});
    write_npy(folder_ / "stds.npy", {1, 3, 1, 1}, std::vector<float>{4, 5, 6});
  }
  Era5Options options() const { return {.folder = folder_.path(), .means = folder_ / "means.npy", .stds = folder_ / "stds.npy"}; }
  static float value(int64_t t, int64_t c, int64_t h, int64_t w) { return static_cast<float>(((t * 3 + c) * 4 + h) * 6 + w); }

  DataFolder folder_;
};

TEST_F(SelectedFields, AreReadInTheOrderOfTheNames) {
  Era5Options chosen = options();
  chosen.in_names = {"v", "t"}, chosen.out_names = {"u", "v", "t"};
  chosen.crop = {{1, 2}}, chosen.height = 2, chosen.width = 3, chosen.history = 2;
  const Era5Dataset dataset(chosen);
  const SampleSpec& spec = dataset.spec();
  EXPECT_THAT(spec.input.channels, ElementsAre("v[-1]", "t[-1]", "v", "t"));
  EXPECT_THAT(spec.input_mean, ElementsAre(3, 1, 3, 1));
  EXPECT_THAT(spec.target.channels, ElementsAre("u", "v", "t"));
  EXPECT_THAT(spec.target_std, ElementsAre(5, 6, 4));
  EXPECT_THAT(spec.earlier_target, ElementsAre(-1, 2, 3));
  EXPECT_THAT(spec.target_of_file, ElementsAre(1, 2, 0));
  std::vector<float> input(4 * 6), target(3 * 6);
  dataset.read(dataset.plan({0, 0}, whole(spec)), {input, target});
  EXPECT_EQ(input[0], value(0, 2, 1, 2));
  EXPECT_EQ(input[6], value(0, 0, 1, 2));
  EXPECT_EQ(input[2 * 6 + 5], value(1, 2, 2, 4));
  EXPECT_EQ(target[0], value(2, 1, 1, 2));
  EXPECT_EQ(target[6 + 3], value(2, 2, 2, 2));
  EXPECT_EQ(target[12], value(2, 0, 1, 2));
  std::vector<float> scaled(4 * 6), scaled_target(3 * 6);
  dataset.read(dataset.plan({0, 0}, whole(spec)), {.input = scaled, .target = scaled_target, .transformed = true});
  EXPECT_EQ(scaled[0], (value(0, 2, 1, 2) - 3) / 6);
  EXPECT_EQ(scaled[6], (value(0, 0, 1, 2) - 1) / 4);
}

TEST_F(SelectedFields, LogarithmsCountTheChosenChannels) {
  Era5Options chosen = options();
  chosen.in_names = chosen.out_names = {"v", "t"};
  chosen.input_log = {0};
  const Era5Dataset dataset(chosen);
  EXPECT_EQ(dataset.spec().input.channels[static_cast<size_t>(dataset.spec().input_log.front())], "v");
  EXPECT_THAT(dataset.warnings(), IsEmpty());
}

}  // namespace
}  // namespace welkin::data::tests
