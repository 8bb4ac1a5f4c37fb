// SPDX-License-Identifier: Apache-2.0
#include "data/tools/statistics.h"

#include <gmock/gmock.h>

#include <cmath>

#include "core/error.h"
#include "data/datasets/channel_statistics.h"
#include "data/formats/npy_file.h"
#include "data/tools/inspect.h"
#include "data_files.h"
#include "number_close.h"

namespace welkin::data::tests {
namespace {

using welkin::tests::close;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(StatisticsTest, EqualTheDirectFormulaOverAllFiles) {
  const DataFolder folder;
  write_field_file(folder / "2001.h5", {.names = {"t", "u"}});
  write_field_file(folder / "2002.h5", {.steps = 9, .first = 1.0e6f, .names = {"t", "u"}});
  const FolderStatistics statistics = compute_statistics(folder.path());
  EXPECT_EQ(statistics.steps, 15);
  EXPECT_THAT(statistics.channels, ElementsAre("t", "u"));
  for (int64_t c = 0; c < 2; ++c) {
    std::vector<double> values;
    for (const auto& [first, steps] : std::vector<std::pair<double, int64_t>>{{0, 6}, {1.0e6, 9}}) {
      for (int64_t t = 0; t < steps; ++t) {
        for (int64_t i = 0; i < 24; ++i) values.push_back(first + static_cast<double>((t * 2 + c) * 24 + i));
      }
    }
    double mean = 0, squares = 0;
    for (const double value : values) mean += value / static_cast<double>(values.size());
    for (const double value : values) squares += (value - mean) * (value - mean);
    const RunningMoments& moments = statistics.moments[static_cast<size_t>(c)];
    EXPECT_TRUE(close(moments.mean(), mean, kFp64, 2 * static_cast<int64_t>(values.size())));
    EXPECT_TRUE(close(moments.std(), std::sqrt(squares / static_cast<double>(values.size())), kFp64,
                      4 * static_cast<int64_t>(values.size())));
    EXPECT_EQ(moments.max(), static_cast<float>(values.back()));
  }
  EXPECT_DOUBLE_EQ(statistics.time_mean[0], (0 + 48 + 96 + 144 + 192 + 240 + 9 * 1.0e6 + 48 * 36) / 15);
}

TEST(StatisticsTest, AnyNumberOfThreadsGivesTheSameBits) {
  const DataFolder folder;
  write_field_file(folder / "2001.h5", {.steps = 7, .channels = 5, .chunked = true});
  write_field_file(folder / "2002.h5", {.steps = 3, .channels = 5, .first = 0.1f});
  const FolderStatistics one = compute_statistics(folder.path(), {.num_threads = 1});
  const FolderStatistics many = compute_statistics(folder.path(), {.num_threads = 4});
  for (size_t c = 0; c < 5; ++c) {
    EXPECT_EQ(one.moments[c].mean(), many.moments[c].mean());
    EXPECT_EQ(one.moments[c].std(), many.moments[c].std());
  }
  EXPECT_EQ(one.time_mean, many.time_mean);
}

TEST(StatisticsTest, ClimatologyIsTheMeanOfEachMonth) {
  const DataFolder folder;
  constexpr int64_t kDay = 86400;  // 1 January 1970, then 31 days later, and a year later
  write_field_file(folder / "1970.h5", {.steps = 2, .time = {0, 31 * kDay}});
  write_field_file(folder / "1971.h5", {.steps = 1, .first = 1000, .time = {365 * kDay}});
  const FolderStatistics statistics = compute_statistics(folder.path(), {.climatology = true});
  EXPECT_EQ(statistics.month_steps[0], 2);
  EXPECT_EQ(statistics.month_steps[1], 1);
  const size_t maps = statistics.time_mean.size();
  EXPECT_EQ(statistics.climatology[3], (3 + 1003) / 2.0) << "January";
  EXPECT_EQ(statistics.climatology[maps + 3], 48 + 3) << "February";
  EXPECT_EQ(statistics.climatology[2 * maps + 3], statistics.time_mean[3]) << "a month without a step";
  write_field_file(folder / "1972.h5", {.steps = 1});
  EXPECT_THAT([&] { compute_statistics(folder.path(), {.climatology = true}); },
              ThrowsMessage<DataError>(HasSubstr("a climatology needs the time of every step: path=")));
}

// A large offset with a small spread, where sums of squares would lose every digit.
TEST(StatisticsTest, DoNotCancel) {
  RunningMoments all;
  for (int piece = 0; piece < 100; ++piece) {
    std::vector<float> values;
    for (int i = 0; i < 1000; ++i) values.push_back(1.0e6f + static_cast<float>((piece * 1000 + i) % 2));
    all.add(values);
  }
  EXPECT_DOUBLE_EQ(all.std(), 0.5);
  EXPECT_DOUBLE_EQ(all.mean(), 1.0e6 + 0.5);
}

TEST(StatisticsTest, WrittenFilesLoadAsStatistics) {
  const DataFolder folder;
  write_field_file(folder / "2001.h5", {});
  write_statistics(compute_statistics(folder.path()), folder / "stats", false);
  const auto loaded = load_channel_statistics(folder / "stats" / "global_means.npy", folder / "stats" / "global_stds.npy", 2, {});
  EXPECT_DOUBLE_EQ(loaded.mean[1] - loaded.mean[0], 24);
  EXPECT_THAT(NpyFile(folder / "stats" / "time_means.npy").header().shape, ElementsAre(1, 2, 4, 6));
}

TEST(StatisticsTest, NanAndConstantChannelsAreNamed) {
  const DataFolder folder;
  write_field_file(folder / "2001.h5", {.names = {"t", "u"}});
  {
    Hdf5File file = Hdf5File::create(folder / "2002.h5");
    file.create_dataset("fields", {.shape = {1, 2, 4, 6}});
    file.set_strings("fields", "channels", {"t", "u"});
    std::vector<float> values(48, 1.0f);
    values[30] = NAN;
    file.write("fields", {0, 0, 0, 0}, {1, 2, 4, 6}, std::span<const float>(values));
    file.close();
  }
  EXPECT_THAT([&] { compute_statistics(folder.path()); },
              ThrowsMessage<DataError>(HasSubstr("values that are not finite: path=" + (folder / "2002.h5").string() +
                                                 ", step=0, channel=u, values=1. Fill or mask them")));
  FolderStatistics constant;
  constant.channels = {"orography"};
  constant.moments.resize(1);
  constant.moments[0].add(std::vector<float>(10, 3.0f));
  constant.height = constant.width = 1;
  constant.time_mean = {3};
  EXPECT_THAT([&] { write_statistics(constant, folder / "out", false); },
              ThrowsMessage<DataError>(HasSubstr("a channel that never changes: channel=orography, value=3")));
  write_statistics(constant, folder / "out", true);
  EXPECT_THAT(NpyFile(folder / "out" / "global_stds.npy").read_doubles(1), ElementsAre(1));
}

TEST(InspectTest, DescribesTrainingFiles) {
  const DataFolder folder;
  write_field_file(folder / "a.h5", {.names = {"t2m", "u10"}, .time = {0, 3600, 7200, 10800, 14400, 18000}});
  const std::string text = inspect_file(folder / "a.h5");
  EXPECT_THAT(text, HasSubstr("HDF5, "));
  EXPECT_THAT(text, HasSubstr("fields  (6, 2, 4, 6)  float32  contiguous, 1.1 KiB"));
  EXPECT_THAT(text, HasSubstr("channels = t2m, u10"));
  EXPECT_THAT(text, HasSubstr("channel 1 u10: min 24, max 287"));
  EXPECT_THAT(text, HasSubstr("from 1970-01-01T00:00:00 to 1970-01-01T05:00:00, first step 3600 s"));
}

// Samples, leads, channels, rows, columns: as many samples as channels, and still each range is of a channel.
TEST(InspectTest, FindsTheChannelsOfPredictions) {
  const DataFolder folder;
  Hdf5File file = Hdf5File::create(folder / "predictions.h5");
  for (const auto& [name, shape] : std::map<std::string, Extents>{{"input", {2, 2, 4, 6}}, {"prediction", {2, 3, 2, 4, 6}}}) {
    file.create_dataset(name, {.shape = shape, .chunk = {}});
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    file.write(name, Extents(shape.size(), 0), shape, std::span<const float>(counting(count)));
    file.set_strings(name, "channels", {"t2m", "u10"});
  }
  file.close();
  const std::string text = inspect_file(folder / "predictions.h5");
  EXPECT_THAT(text, HasSubstr("channel 0 t2m: min 0, max 71"));
  EXPECT_THAT(text, HasSubstr("channel 1 u10: min 24, max 95"));
  EXPECT_THAT(text, HasSubstr("channel 0 t2m: min 0, max 263"));
  EXPECT_THAT(text, HasSubstr("channel 1 u10: min 24, max 287"));
}

TEST(InspectTest, DescribesNpyAndSafetensors) {
  const DataFolder folder;
  write_npy(folder / "a.npy", {2, 3}, counting(6));
  EXPECT_THAT(inspect_file(folder / "a.npy"), HasSubstr("(2, 3)  F32  C order\nvalues: min 0, max 5, mean 2.5"));
  SafetensorsWriter writer;
  const std::vector<float> values = counting(4);
  writer.add("w", Dtype::F32, {4}, std::as_bytes(std::span(values)));
  writer.write(folder / "a.safetensors");
  EXPECT_THAT(inspect_file(folder / "a.safetensors"), HasSubstr("w       (4)    F32    min 0, max 3"));
}

TEST(InspectTest, UnknownFormatsAreNamed) {
  const DataFolder folder;
  std::ofstream(folder / "a.txt") << "some text that is no field at all";
  EXPECT_THAT([&] { inspect_file(folder / "a.txt"); },
              ThrowsMessage<DataError>(HasSubstr("not a known format: path=" + (folder / "a.txt").string())));
}

}  // namespace
}  // namespace welkin::data::tests
