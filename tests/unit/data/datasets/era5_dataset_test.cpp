// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/era5_dataset.h"

#include <gmock/gmock.h>

#include <cmath>

#include "core/error.h"
#include "data/datasets/channel_statistics.h"
#include "data/formats/npy_file.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct Pair {
  std::vector<float> input, target;
};

Pair read_pair(const Era5Dataset& dataset, int64_t index, bool normalised = true) {
  const SampleSpec& spec = dataset.spec();
  const Region region = whole(spec);
  const int64_t plane = region.extent[0] * region.extent[1];
  Pair pair;
  pair.input.resize(static_cast<size_t>(spec.input.shape[0] * plane));
  pair.target.resize(static_cast<size_t>(spec.target.shape[0] * plane));
  dataset.read(dataset.plan({index, 0}, region), {pair.input, pair.target});
  if (normalised) {
    normalise(pair.input, spec.input_mean, spec.input_std);
    normalise(pair.target, spec.target_mean, spec.target_std);
  }
  return pair;
}

Era5Options golden_options(const std::string& folder, int64_t lead, Rules rules, const std::string& suffix = "") {
  const auto golden = golden_folder("era5_pairs");
  return {.folder = golden / folder,
          .height = 5,
          .width = 8,
          .lead = lead,
          .means = golden / ("global_means" + suffix + ".npy"),
          .stds = golden / ("global_stds" + suffix + ".npy"),
          .rules = rules};
}

TEST(Era5DatasetTest, TutorialPairsEqualTheGoldenOnes) {
  WELKIN_NEED_GOLDEN("era5_pairs");
  int64_t errors = 0;
  const auto golden = read_json(golden_folder("era5_pairs") / "pairs.json");
  for (const auto& row : golden["cases"]) {
    const Era5Dataset dataset(golden_options(row["folder"], row["dt"], Rules::Tutorial));
    ASSERT_EQ(dataset.size(), row["len_tutorial"].get<int64_t>());
    for (const auto& sample : row["tutorial"]) {
      const int64_t index = sample["index"];
      if (sample.contains("error")) {
        EXPECT_THAT(
            [&] {
              dataset.plan({index, 0}, {});
            },
            ThrowsMessage<DataError>(HasSubstr("the tutorials' rule reads beyond the end of a year: path=")));
        ++errors;
        continue;
      }
      const SamplePlan plan = dataset.plan({index, 0}, {});
      EXPECT_EQ(plan.file, sample["year_index"].get<int64_t>());
      EXPECT_EQ(plan.time, sample["input_step"].get<int64_t>());
    }
  }
  EXPECT_GT(errors, 0);
}

TEST(Era5DatasetTest, CorrectedPairsAreEachOfTheGoldenOnesOnce) {
  WELKIN_NEED_GOLDEN("era5_pairs");
  const auto golden = read_json(golden_folder("era5_pairs") / "pairs.json");
  for (const auto& row : golden["cases"]) {
    const Era5Dataset dataset(golden_options(row["folder"], row["dt"], Rules::Corrected));
    const auto& wanted = row["correct_pairs [year_index, input_step, target_step]"];
    ASSERT_EQ(dataset.size(), row["correct_count"].get<int64_t>());
    ASSERT_EQ(dataset.size(), static_cast<int64_t>(wanted.size()));
    for (int64_t index = 0; index < dataset.size(); ++index) {
      const SamplePlan plan = dataset.plan({index, 0}, {});
      const auto& pair = wanted[static_cast<size_t>(index)];
      EXPECT_EQ(plan.file, pair[0].get<int64_t>());
      EXPECT_EQ(plan.time, pair[1].get<int64_t>());
      EXPECT_EQ(plan.time + row["dt"].get<int64_t>(), pair[2].get<int64_t>());
    }
  }
}

TEST(Era5DatasetTest, NormalisedSamplesEqualTheGoldenOnesExactly) {
  WELKIN_NEED_GOLDEN("era5_pairs");
  const SafetensorsFile golden(golden_folder("era5_pairs") / "samples.safetensors");
  int64_t compared = 0;
  const auto compare = [&](const std::string& prefix, const Era5Dataset& dataset) {
    for (int64_t index = 0; index < dataset.size(); ++index) {
      const std::string name = prefix + ".sample" + std::to_string(index);
      if (!golden.contains(name + ".input")) continue;
      const Pair pair = read_pair(dataset, index);
      EXPECT_EQ(pair.input, golden_floats(golden, name + ".input")) << name;
      EXPECT_EQ(pair.target, golden_floats(golden, name + ".target")) << name;
      ++compared;
    }
  };
  for (const int64_t lead : {1, 2, 3}) {
    compare("dt" + std::to_string(lead), Era5Dataset(golden_options("short_first", lead, Rules::Tutorial)));
  }
  compare("f64stats", Era5Dataset(golden_options("short_first", 1, Rules::Tutorial, "_f64")));
  EXPECT_EQ(compared, static_cast<int64_t>(golden.names().size()) / 2) << "golden samples that no case compared";
}

// Two files of counting numbers: value = first + ((t * C + c) * H + h) * W + w.
class Era5FilesTest : public ::testing::Test {
 protected:
  Era5FilesTest() {
    write_field_file(folder_ / "2001.h5", {.names = {"t", "u"}, .time = times(6, 0)});
    write_field_file(folder_ / "2002.h5", {.steps = 8, .first = 10000, .names = {"t", "u"}, .time = times(8, 1000000)});
  }
  static std::vector<int64_t> times(int64_t count, int64_t first) {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(first + 3600 * i);
    return values;
  }
  void write_statistics(const std::vector<float>& means, const std::vector<float>& stds) const {
    write_npy(folder_ / "means.npy", {1, static_cast<int64_t>(means.size()), 1, 1}, means);
    write_npy(folder_ / "stds.npy", {1, static_cast<int64_t>(stds.size()), 1, 1}, stds);
  }
  Era5Options options() const { return {.folder = folder_.path()}; }
  Era5Options with_statistics() const {
    Era5Options with = options();
    with.means = folder_ / "means.npy";
    with.stds = folder_ / "stds.npy";
    return with;
  }

  DataFolder folder_;
};

TEST_F(Era5FilesTest, ReadsTheRightStepsOfTheRightFile) {
  const Era5Dataset dataset(options());
  EXPECT_EQ(dataset.size(), 5 + 7);
  EXPECT_THAT(dataset.spec().input.shape, ElementsAre(2, 4, 6));
  EXPECT_THAT(dataset.spec().input.channels, ElementsAre("t", "u"));
  EXPECT_EQ(read_pair(dataset, 4).input.front(), 4 * 48.0f);
  EXPECT_EQ(read_pair(dataset, 4).target.back(), 6 * 48.0f - 1);
  EXPECT_EQ(read_pair(dataset, 5).input.front(), 10000.0f) << "the sixth sample is the first pair of the second file";
}

TEST_F(Era5FilesTest, CropsTheTopLeftAndTakesTheFirstChannels) {
  Era5Options cropped = options();
  cropped.height = 3, cropped.width = 5, cropped.in_channels = 2, cropped.out_channels = 1;
  const Era5Dataset dataset(cropped);
  EXPECT_THAT(dataset.spec().target.shape, ElementsAre(1, 3, 5));
  const Pair pair = read_pair(dataset, 0);
  for (size_t i = 0; i < pair.input.size(); ++i) {
    EXPECT_EQ(pair.input[i], static_cast<float>(i / 15 * 24 + i % 15 / 5 * 6 + i % 5));
  }
  EXPECT_EQ(pair.target[14], 48.0f + 16.0f);
}

TEST_F(Era5FilesTest, RegionOfASampleIsAPartOfIt) {
  const Era5Dataset dataset(options());
  const Region region{{1, 2, 0}, {2, 3, 1}};
  std::vector<float> input(12), target(12);
  dataset.read(dataset.plan({0, 0}, region), {input, target});
  EXPECT_EQ(input[0], 8.0f);
  EXPECT_EQ(input[5], 16.0f);
  EXPECT_EQ(input[6], 24.0f + 8.0f);
}

TEST_F(Era5FilesTest, HistoryIsOldestFirstAndStaysInsideAFile) {
  Era5Options history = options();
  history.history = 3, history.lead = 2;
  const Era5Dataset dataset(history);
  EXPECT_EQ(dataset.size(), 2 + 4);
  EXPECT_THAT(dataset.spec().input.channels, ElementsAre("t[-2]", "u[-2]", "t[-1]", "u[-1]", "t", "u"));
  EXPECT_EQ(dataset.spec().newest_input_channel, 4);
  const Pair pair = read_pair(dataset, 1);
  EXPECT_EQ(pair.input[0], 48.0f);
  EXPECT_EQ(pair.input[4 * 24], 3 * 48.0f);
  EXPECT_EQ(pair.target[0], 5 * 48.0f);
}

class ClockChannel : public ExtraChannels {
 public:
  int64_t count() const override { return 1; }
  const std::vector<std::string>& names() const override { return names_; }
  void fill(int64_t unix_seconds, const Region& region, std::span<float> out) const override {
    EXPECT_EQ(static_cast<int64_t>(out.size()), region.extent[0] * region.extent[1]);
    std::ranges::fill(out, static_cast<float>(unix_seconds));
  }

 private:
  std::vector<std::string> names_{"clock"};
};

TEST_F(Era5FilesTest, ComputedChannelsComeLastAtTheTargetsTime) {
  write_statistics({1, 2}, {3, 4});
  Era5Options with = with_statistics();
  with.lead = 2;
  const Era5Dataset dataset(with, std::make_shared<ClockChannel>());
  EXPECT_THAT(dataset.spec().input.channels, ElementsAre("t", "u", "clock"));
  EXPECT_THAT(dataset.spec().input_mean, ElementsAre(1, 2, 0));
  EXPECT_THAT(dataset.spec().input_std, ElementsAre(3, 4, 1));
  EXPECT_THAT(dataset.spec().target_std, ElementsAre(3, 4));
  EXPECT_EQ(read_pair(dataset, 1).input[2 * 24], 3 * 3600.0f);
}

TEST_F(Era5FilesTest, CompressedAndDoubleFilesReadTheSame) {
  const DataFolder other;
  write_field_file(other / "2001.h5", {.chunked = true, .names = {"t", "u"}});
  write_field_file(other / "2002.h5", {.steps = 8, .first = 10000, .names = {"t", "u"}, .type = Hdf5Type::Float64});
  Era5Options encoded = options(), plain = options();
  encoded.folder = other.path();
  encoded.width = plain.width = 5;
  const Era5Dataset a(plain), b(encoded);
  ASSERT_EQ(a.size(), b.size());
  for (int64_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(read_pair(a, i).input, read_pair(b, i).input);
    EXPECT_EQ(read_pair(a, i).target, read_pair(b, i).target);
  }
}

TEST_F(Era5FilesTest, LimitTakesTheFirstSamples) {
  Era5Options limited = options();
  limited.limit = 7;
  EXPECT_EQ(Era5Dataset(limited).size(), 7);
  limited.limit = 700;
  EXPECT_EQ(Era5Dataset(limited).size(), 12);
}

// A rollout feeds on it: from the target on, within a file.
TEST_F(Era5FilesTest, TheFollowingSampleBeginsWhereThisOneEnds) {
  Era5Options two = options();
  two.lead = 2;
  const Era5Dataset dataset(two);  // 4 pairs of the first file, 6 of the second
  ASSERT_EQ(dataset.size(), 10);
  const std::vector<std::optional<int64_t>> wanted{2, 3, {}, {}, 6, 7, 8, 9, {}, {}};
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const auto next = dataset.following(i);
    EXPECT_EQ(next, wanted[static_cast<size_t>(i)]) << i;
    if (!next) continue;
    EXPECT_EQ(read_pair(dataset, *next).input, read_pair(dataset, i).target);
  }
  two.limit = 8;
  EXPECT_EQ(Era5Dataset(two).following(6), std::nullopt);
}

TEST_F(Era5FilesTest, DescribesItselfAsTheTutorialsDo) {
  Era5Options limited = options();
  EXPECT_THAT(Era5Dataset(limited).describe(),
              ElementsAre("Getting file stats from " + (folder_ / "2001.h5").string(), "Number of samples per year: 6 to 8",
                          "Found data at path " + folder_.path().string() + ". Number of examples: 12. Image Shape: 4 x 6 x 2"));
  limited.limit = 7, limited.height = 3, limited.width = 5;
  EXPECT_THAT(Era5Dataset(limited).describe(),
              ElementsAre(HasSubstr("2001.h5"), "Overriding total number of samples to: 7", "Number of samples per year: 6 to 8",
                          HasSubstr("Number of examples: 7. Image Shape: 3 x 5 x 2")));
}

TEST_F(Era5FilesTest, AYearWithTooFewStepsIsNamed) {
  Era5Options far = options();
  far.lead = 6;
  EXPECT_THAT(
      [&] { Era5Dataset{far}; },
      ThrowsMessage<DataError>(HasSubstr("[data] a year with too few steps: path=" + (folder_ / "2001.h5").string() +
                                         ", steps=6, needed=7, dt=6, history=1. Remove that file or reduce dt or history")));
}

TEST_F(Era5FilesTest, UnusableStatisticsAreNamed) {
  const auto message = [&](const std::vector<float>& means, const std::vector<float>& stds) {
    write_statistics(means, stds);
    try {
      Era5Dataset{with_statistics()};
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(message({1, NAN}, {1, 1}),
              HasSubstr("a mean that is not finite: path=" + (folder_ / "means.npy").string() + ", channel=1 (u), value=nan"));
  EXPECT_THAT(message({1, 1}, {0, 1}), HasSubstr("a standard deviation that is not positive: path=" +
                                                 (folder_ / "stds.npy").string() + ", channel=0 (t), value=0"));
  EXPECT_THAT(message({1, 1}, {1, INFINITY}), HasSubstr("a standard deviation that is not finite"));
  EXPECT_THAT(message({1, 1, 1}, {1, 1, 1}),
              HasSubstr("statistics do not fit the fields: path=" + (folder_ / "means.npy").string() +
                        ", shape=(1, 3, 1, 1), expected=(1, 2, 1, 1)"));
}

TEST_F(Era5FilesTest, MisfitsAreNamed) {
  Era5Options wrong = options();
  wrong.height = 5;
  EXPECT_THAT([&] { Era5Dataset{wrong}; }, ThrowsMessage<DataError>(HasSubstr("grid=4 x 6, img_size=5 x 6")));
  wrong = options();
  wrong.in_channels = 3;
  EXPECT_THAT([&] { Era5Dataset{wrong}; }, ThrowsMessage<DataError>(HasSubstr("channels=2, n_in_channels=3")));
  write_field_file(folder_ / "2003.h5", {.channels = 3});
  EXPECT_THAT([&] { Era5Dataset{options()}; },
              ThrowsMessage<DataError>(HasSubstr("files of one folder differ: path=" + (folder_ / "2003.h5").string())));
}

TEST_F(Era5FilesTest, FoldersAndFilesThatAreNoneAreNamed) {
  Era5Options wrong = options();
  wrong.folder = folder_ / "absent";
  EXPECT_THAT([&] { Era5Dataset{wrong}; },
              ThrowsMessage<DataError>(HasSubstr("train rebinds the prefix /data with --data_root")));
  std::filesystem::create_directory(folder_ / "empty");
  wrong.folder = folder_ / "empty";
  EXPECT_THAT([&] { Era5Dataset{wrong}; }, ThrowsMessage<DataError>(HasSubstr("no training files: path=")));
  std::ofstream(folder_ / "2000.h5") << "not HDF5 at all";
  EXPECT_THAT([&] { Era5Dataset{options()}; },
              ThrowsMessage<DataError>(HasSubstr("cannot open as HDF5: path=" + (folder_ / "2000.h5").string())));
}

TEST_F(Era5FilesTest, WrongDatasetNameListsWhatThereIs) {
  Hdf5File file = Hdf5File::create(folder_ / "2000.h5");
  file.create_dataset("field", {.shape = {2, 2, 4, 6}, .chunk = {}});
  file.close();
  EXPECT_THAT([&] { Era5Dataset{options()}; },
              ThrowsMessage<DataError>(HasSubstr("no such data set: path=" + (folder_ / "2000.h5").string() +
                                                 ", dataset=fields. The file holds: field")));
}

TEST_F(Era5FilesTest, GapsInTimeAreRefused) {
  write_field_file(folder_ / "2001.h5", {.names = {"t", "u"}, .time = {0, 3600, 7200, 14400, 18000, 21600}});
  EXPECT_THAT([&] { Era5Dataset{options()}; },
              ThrowsMessage<DataError>(HasSubstr("step=2, seconds=7200, shortest=3600. Make it with welkin data ingest")));
}

TEST_F(Era5FilesTest, AFileThatVanishesOrShrinksWhileReadingIsAnError) {
  const Era5Dataset dataset(options());
  read_pair(dataset, 0);
  std::filesystem::remove(folder_ / "2001.h5");
  EXPECT_THAT([&] { read_pair(dataset, 0); },
              ThrowsMessage<DataError>(
                  HasSubstr("the file was removed or replaced while it was being read: path=" + (folder_ / "2001.h5").string())));
  std::filesystem::resize_file(folder_ / "2002.h5", 100);
  EXPECT_THAT([&] { read_pair(dataset, 11); }, ThrowsMessage<DataError>(HasSubstr("the file was truncated or written to")));
}

}  // namespace
}  // namespace welkin::data::tests
