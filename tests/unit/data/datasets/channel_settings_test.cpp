// SPDX-License-Identifier: Apache-2.0
// Roles, static channels, points without a value and normalisation of channels, from a file to a batch.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "data/datasets/era5_dataset.h"
#include "data/formats/npy_file.h"
#include "data/pipeline/pipeline.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

constexpr float kHole = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kPoints = 4;  // 2 x 2

// t2m, rain and sst of three times; the last point has no value; a land mask.
class ChannelFile : public ::testing::Test {
 protected:
  ChannelFile() {
    Hdf5File file = Hdf5File::create(folder_ / "2001.h5");
    const Extents shape{3, 3, 2, 2};
    file.create_dataset("fields", {.shape = shape, .chunk = {}});
    std::vector<float> values = counting(36);
    for (size_t i = 3; i < values.size(); i += kPoints) values[i] = kHole;
    file.write("fields", {0, 0, 0, 0}, shape, std::span<const float>(values));
    file.set_strings("fields", "channels", {"t2m", "rain", "sst"});
    file.set_strings("fields", "roles", {"prognostic", "diagnostic", "forcing"});
    file.set_string("fields", "missing", "hole");
    file.create_dataset("static", {.shape = {1, 2, 2}, .chunk = {}});
    file.write("static", {0, 0, 0}, {1, 2, 2}, std::span<const float>(std::vector<float>{1, 1, 0, 0}));
    file.set_strings("static", "channels", {"lsm"});
    file.close();
    const auto write = [&](const char* name, const std::vector<float>& numbers) {
      write_npy(folder_ / name, {1, 3, 1, 1}, numbers);
      return folder_ / name;
    };
    options_.folder = folder_.path();
    options_.means = write("global_means.npy", {10, 20, 30});
    options_.stds = write("global_stds.npy", {2, 4, 5});
    write("global_mins.npy", {0, 4, 8});
    write("global_maxs.npy", {26, 30, 34});
  }

  Batch first_batch(const Era5Dataset& dataset, NanPolicy policy = NanPolicy::Off) {
    pipeline_.emplace(dataset, Sampler(dataset.size(), Order::Sequential, 1), PipelineOptions{.rules = {.nan = policy}});
    return pipeline_->next();
  }

  static std::vector<float> channel(const at::Tensor& batch, int64_t c) {
    const at::Tensor plane = batch[0][c].contiguous();
    return {plane.const_data_ptr<float>(), plane.const_data_ptr<float>() + plane.numel()};
  }

  DataFolder folder_;
  Era5Options options_;
  std::optional<Pipeline> pipeline_;
};

TEST_F(ChannelFile, RolesOfTheFileDecideAndStaticChannelsFollow) {
  const Era5Dataset dataset(options_);
  const SampleSpec& spec = dataset.spec();
  EXPECT_THAT(spec.input.channels, ElementsAre("t2m", "sst", "lsm"));
  EXPECT_THAT(spec.target.channels, ElementsAre("t2m", "rain"));
  EXPECT_THAT(spec.earlier_target, ElementsAre(0, -1));
  EXPECT_THAT(spec.known_input, ElementsAre(1, 2));
  EXPECT_THAT(dataset.describe().back(), HasSubstr("Points without a value (NaN) have no weight in loss and scores"));
  EXPECT_THAT(dataset.warnings(), ::testing::Not(::testing::Contains(HasSubstr("declare missing values"))));
}

TEST_F(ChannelFile, TheInputIsFilledAndTheTargetKeepsItsHoles) {
  const Era5Dataset dataset(options_);
  const Batch batch = first_batch(dataset);
  EXPECT_THAT(channel(batch.input, 0), ElementsAre(-5, -4.5f, -4, 0)) << "the mean";
  EXPECT_THAT(channel(batch.input, 2), ElementsAre(1, 1, 0, 0)) << "a mask is not normalised";
  const std::vector<float> target = channel(batch.target, 0);
  EXPECT_EQ(target[0], 1);
  EXPECT_TRUE(std::isnan(target[3]));
}

TEST_F(ChannelFile, HoleFillIsInTheUnitOfTheChannel) {
  options_.hole_fill = {"t2m=14"};
  const Era5Dataset dataset(options_);
  EXPECT_THAT(channel(first_batch(dataset).input, 0), ElementsAre(-5, -4.5f, -4, 2));
  options_.hole_fill = {"rain=0"};
  EXPECT_THAT([&] { Era5Dataset{options_}; },
              ThrowsMessage<ConfigError>(HasSubstr("no channel of this name: key=hole_fill, channel=rain")))
      << "a target has nothing to fill";
}

TEST_F(ChannelFile, NormalizationOfChannels) {
  options_.normalization = {"t2m=minmax", "rain=log:4", "sst=none"};
  const Era5Dataset dataset(options_);
  const Batch batch = first_batch(dataset);
  EXPECT_THAT(channel(batch.input, 0), ElementsAre(0, 1.0f / 26, 2.0f / 26, 10.0f / 26))
      << "a hole has the mean, as it is normalised";
  EXPECT_THAT(channel(batch.input, 1), ElementsAre(8, 9, 10, 30));
  EXPECT_EQ(channel(batch.target, 1)[0], std::log1p(16.0f / 4));
  options_.normalization = {"t2m=log:0"};
  EXPECT_THAT([&] { Era5Dataset{options_}; },
              ThrowsMessage<ConfigError>(HasSubstr("no kind of normalization: channel=t2m, normalization=log:0")));
}

TEST_F(ChannelFile, SpreadIsThatOfNormalisedChannels) {
  EXPECT_THAT(Era5Dataset(options_).spec().input_spread, IsEmpty()) << "standard deviations are 1";
  options_.normalization = {"t2m=minmax", "rain=log:4", "sst=none"};
  EXPECT_THAT(Era5Dataset(options_).spec().input_spread, ElementsAre(2.0 / 26, 5, 1)) << "of t2m, sst and the land mask";
  options_.history = 2;
  EXPECT_THAT(Era5Dataset(options_).spec().input_spread, ElementsAre(2.0 / 26, 5, 2.0 / 26, 5, 1));
  options_.history = 1;
  options_.normalization = {"t2m=log:2", "sst=minmax"};
  EXPECT_THAT(Era5Dataset(options_).spec().input_spread, ElementsAre(1, 5.0 / 26, 1)) << "nobody knows that of a logarithm";
  options_.normalization = {"t2m=none", "sst=minmax"};
  options_.input_log = {0};
  EXPECT_THAT(Era5Dataset(options_).spec().input_spread, ElementsAre(1, 5.0 / 26, 1));
}

TEST_F(ChannelFile, PoliciesThatTheUserChoosesHoldOverTheFiles) {
  const Era5Dataset dataset(options_);
  EXPECT_EQ(nan_policy_for(dataset.spec(), NanPolicy::Off), NanPolicy::Hole);
  EXPECT_THAT([&] { first_batch(dataset, NanPolicy::Error); }, ThrowsMessage<DataError>(HasSubstr("values that are not finite")));
  EXPECT_EQ(channel(first_batch(dataset, NanPolicy::Mask).target, 0)[3], 0);
}

}  // namespace
}  // namespace welkin::data::tests
