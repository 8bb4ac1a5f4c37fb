// SPDX-License-Identifier: Apache-2.0
// Archives with an array for each variable: what they hold, region by region, and what is refused.
#include "data/cf/archive.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "data/datasets/field_source.h"
#include "data/storage/chunk_cache.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

constexpr int64_t kRows = 3, kColumns = 4;
constexpr double kPlane = kRows * kColumns;

struct VariableSpec {
  std::string name = "tas";
  int64_t first_day = 0, steps = 4;
  std::vector<double> levels{};  // Pa
  float first = 0;               // value = first + flat index as stored
  std::vector<double> latitude{-60, 0, 60};
  std::string calendar = "360_day";
};

void write_axis(Hdf5File& file, const std::string& name, const std::vector<double>& values, const std::string& units) {
  const auto count = static_cast<int64_t>(values.size());
  file.create_dataset(name, {.type = Hdf5Type::Float64, .shape = {count}, .chunk = {}});
  file.write(name, {0}, {count}, std::span<const double>(values));
  file.set_string(name, "units", units);
}

// As CMIP6 has it: one variable, some of its times, rows from the south.
void write_variable(const std::filesystem::path& path, const VariableSpec& spec) {
  Hdf5File file = Hdf5File::create(path);
  std::vector<double> days;
  for (int64_t i = 0; i < spec.steps; ++i) days.push_back(static_cast<double>(spec.first_day + i));
  write_axis(file, "lat", spec.latitude, "degrees_north");
  write_axis(file, "lon", {0, 90, 180, 270}, "degrees_east");
  Extents shape{kRows, kColumns};
  std::vector<std::string> axes{"lat", "lon"};
  if (!spec.levels.empty()) {
    write_axis(file, "plev", spec.levels, "Pa");
    shape.insert(shape.begin(), static_cast<int64_t>(spec.levels.size()));
    axes.insert(axes.begin(), "plev");
  }
  if (spec.steps > 0) {
    write_axis(file, "time", days, "days since 0101-01-01");
    file.set_string("time", "calendar", spec.calendar);
    shape.insert(shape.begin(), spec.steps);
    axes.insert(axes.begin(), "time");
  }
  file.create_dataset(spec.name, {.shape = shape, .chunk = {}});
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  std::vector<float> values = counting(count);
  for (float& value : values) value += spec.first;
  file.write(spec.name, Extents(shape.size(), 0), shape, std::span<const float>(values));
  file.set_strings(spec.name, "axes", axes);
  file.set_string(spec.name, "units", "K");
  file.close();
}

class ArchiveTest : public ::testing::Test {
 protected:
  ArchiveTest() {
    std::filesystem::create_directories(folder_ / "ta");
    write_variable(folder_ / "tas_0.nc", {});
    write_variable(folder_ / "tas_1.nc", {.first_day = 4, .steps = 2, .first = 1000});
    write_variable(folder_ / "ta/ta.nc", {.name = "ta", .steps = 6, .levels = {85000, 50000, 25000}, .first = 5000});
    write_variable(folder_ / "orog.nc", {.name = "orog", .steps = 0, .first = -7});
  }
  Archive open(std::vector<std::string> variables, std::vector<std::string> times = {}, std::vector<double> levels = {}) const {
    return open_archive({.path = folder_.path(),
                         .variables = std::move(variables),
                         .levels = std::move(levels),
                         .times = std::move(times),
                         .times_key = "train_times"},
                        std::make_shared<ChunkCache>(1 << 20));
  }
  static std::vector<float> plane(const ArrayFile& file, int64_t step, int64_t channel) {
    std::vector<float> values(static_cast<size_t>(kPlane));
    file.array("fields")->read({{step, channel, 0, 0}, {step + 1, channel + 1, kRows, kColumns}}, values);
    return values;
  }

  DataFolder folder_;
};

TEST_F(ArchiveTest, ChannelsOfSeveralFilesAreOneArrayNorthFirst) {
  const Archive archive = open({"tas", "ta@500:t500", "orog"});
  ASSERT_THAT(archive.parts, SizeIs(1));
  const ArrayFile& part = archive.parts.front();
  EXPECT_THAT(part.texts("fields", "channels"), ElementsAre("tas", "t500"));
  EXPECT_THAT(part.array("fields")->facts().shape, ElementsAre(6, 2, kRows, kColumns));
  EXPECT_THAT(part.array("latitude")->read_doubles(), ElementsAre(60, 0, -60));
  EXPECT_THAT(archive.files, SizeIs(4));
  // Rows were stored from the south.
  EXPECT_THAT(plane(part, 0, 0), ElementsAre(8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3));
  EXPECT_EQ(plane(part, 5, 0).front(), 1000 + kPlane + 8) << "the second step of the second file";
  EXPECT_EQ(plane(part, 2, 1).front(), 5000 + (2 * 3 + 1) * kPlane + 8) << "the second level";
  EXPECT_THAT(part.texts("static", "channels"), ElementsAre("orog"));
  EXPECT_EQ(part.array("static")->read_doubles().front(), -7 + 8);
}

TEST_F(ArchiveTest, AVariableMayHaveOtherNamesElsewhere) {
  const ArrayFile part = open({"2m_temperature|t2m|tas", "zg|ta@500"}).parts.front();
  EXPECT_THAT(part.texts("fields", "channels"), ElementsAre("2m_temperature", "zg500")) << "the first name holds";
  EXPECT_EQ(plane(part, 5, 0).front(), 1000 + kPlane + 8);
  EXPECT_THAT(open({"t2m|tas:t"}).parts.front().texts("fields", "channels"), ElementsAre("t"));
  EXPECT_THAT([&] { open({"tas|"}); }, ThrowsMessage<ConfigError>(HasSubstr("no variable: variables=tas|")));
}

TEST_F(ArchiveTest, AnyRegionIsThatOfTheWhole) {
  const ArrayFile part = open({"tas", "ta"}, {}, {850, 500}).parts.front();
  EXPECT_THAT(part.texts("fields", "channels"), ElementsAre("tas", "ta850", "ta500"));
  const StoredArrayPtr fields = part.array("fields");
  const Extents shape = fields->facts().shape;
  std::vector<float> all(static_cast<size_t>(fields->facts().num_values()));
  fields->read(whole_region(shape), all);
  const ArrayRegion region{{3, 0, 1, 1}, {6, 3, 3, 3}};  // across both files of tas
  std::vector<float> some(static_cast<size_t>(region.num_values()));
  fields->read(region, some);
  size_t place = 0;
  for (int64_t t = 3; t < 6; ++t) {
    for (int64_t c = 0; c < 3; ++c) {
      for (int64_t i = 1; i < 3; ++i) {
        for (int64_t j = 1; j < 3; ++j) {
          EXPECT_EQ(some[place++], all[static_cast<size_t>(((t * shape[1] + c) * kRows + i) * kColumns + j)]);
        }
      }
    }
  }
}

TEST_F(ArchiveTest, TimesAreThoseOfTheSpanAndGapsEndAPart) {
  write_variable(folder_ / "tas_2.nc", {.first_day = 20, .steps = 3});
  const Archive archive = open({"tas"}, {"0101-01-03", "0101-01-22"});
  ASSERT_THAT(archive.parts, SizeIs(2));
  const FieldFile first(archive.parts[0]), second(archive.parts[1]);
  EXPECT_EQ(first.facts().steps, 4);
  EXPECT_EQ(second.facts().steps, 2);
  EXPECT_EQ(first.facts().calendar, "360_day");
  EXPECT_EQ(first.facts().time.front(), parse_date("0101-01-03", Calendar::Day360));
  EXPECT_THAT(first.facts().path.string(), HasSubstr("#0101"));
}

TEST_F(ArchiveTest, YearsOfManyStepsAreCut) {
  write_variable(folder_ / "long.nc", {.name = "pr", .steps = 400});
  const Archive archive = open({"pr"});
  ASSERT_THAT(archive.parts, SizeIs(2));
  EXPECT_EQ(FieldFile(archive.parts[0]).facts().steps, 360);
  EXPECT_TRUE(archive.parts[1].path.string().ends_with("#0102")) << archive.parts[1].path;
}

TEST_F(ArchiveTest, WhatIsNotThereIsNamed) {
  EXPECT_THAT([&] { open({"tax"}); }, ThrowsMessage<ConfigError>(AllOf(HasSubstr("no such variable: variables=tax"),
                                                                       HasSubstr("Did you mean: ta, tas"))));
  EXPECT_THAT([&] { open({"ta@400"}); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("level=400"), HasSubstr("Choose from: 850 500 250"))));
  EXPECT_THAT([&] { open({"tas@400"}); }, ThrowsMessage<ConfigError>(HasSubstr("It has no levels: leave out the @")));
  EXPECT_THAT([&] { open({"ta@low"}); }, ThrowsMessage<ConfigError>(HasSubstr("no variable: variables=ta@low")));
  EXPECT_THAT([&] { open({"tas", "tas"}); }, ThrowsMessage<ConfigError>(HasSubstr("a channel is named twice: channel=tas")));
  EXPECT_THAT([&] { open({"orog"}); }, ThrowsMessage<ConfigError>(HasSubstr("no variable has a time")));
  EXPECT_THAT(
      [&] {
        open({"tas"}, {"0200", "0201"});
      },
      ThrowsMessage<ConfigError>(
          AllOf(HasSubstr("train_times=[0200, 0201]"), HasSubstr("first=0101-01-01T00:00:00, last=0101-01-06"))));
}

TEST_F(ArchiveTest, FilesThatDoNotFitTogetherAreRefused) {
  write_variable(folder_ / "short.nc", {.name = "pr", .steps = 5});
  EXPECT_THAT(
      [&] {
        open({"tas", "pr"});
      },
      ThrowsMessage<DataError>(
          HasSubstr("variables have different times: time=0101-01-06T00:00:00, of variable=tas, not of variable=pr")));
  EXPECT_NO_THROW(open({"tas", "pr"}, {"0101-01-01", "0101-01-05"}));
  write_variable(folder_ / "other.nc", {.name = "ps", .steps = 6, .latitude = {-50, 0, 50}});
  EXPECT_THAT(
      [&] {
        open({"tas", "ps"});
      },
      ThrowsMessage<DataError>(HasSubstr("variables lie on different grids: variable=tas")));
  write_variable(folder_ / "leap.nc", {.name = "hus", .steps = 6, .calendar = "noleap"});
  EXPECT_THAT([&] { open({"tas", "hus"}); }, ThrowsMessage<DataError>(HasSubstr("files have different calendars")));
  write_variable(folder_ / "tas_again.nc", {.first_day = 3, .steps = 1});
  EXPECT_THAT([&] { open({"tas"}); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("a time occurs twice: variable=tas"), HasSubstr("tas_again.nc"))));
}

TEST(FieldSourceTest, TimesAndLevelsAreOfArchives) {
  const DataFolder folder;
  write_field_file(folder / "2000.h5", {});
  EXPECT_THAT(
      [&] {
        open_field_files({.folder = folder.path(), .times = {"1979", "1980"}});
      },
      ThrowsMessage<ConfigError>(HasSubstr("chosen of an archive of variables")));
}

}  // namespace
}  // namespace welkin::data::tests
