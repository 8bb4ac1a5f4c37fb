// SPDX-License-Identifier: Apache-2.0
// Training files of other makers: times in CF units, coordinates under other names, missing values.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "core/error.h"
#include "data/datasets/era5_dataset.h"
#include "data/datasets/field_file.h"
#include "data/pipeline/sample_check.h"
#include "data/tools/inspect.h"
#include "data/tools/statistics.h"
#include "data_files.h"
#include "number_close.h"

namespace welkin::data::tests {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;

// Fields (3, 2, 4, 6) of counting numbers, and what `more` adds.
template <typename More>
std::filesystem::path write_file(const DataFolder& folder, const More& more) {
  const std::filesystem::path path = folder / "2001.h5";
  Hdf5File file = Hdf5File::create(path);
  file.create_dataset("fields", {.shape = {3, 2, 4, 6}, .chunk = {}});
  file.write("fields", {0, 0, 0, 0}, {3, 2, 4, 6}, std::span<const float>(counting(144)));
  more(file);
  file.close();
  return path;
}

void add_axis(Hdf5File& file, const std::string& name, const std::vector<double>& values) {
  const auto count = static_cast<int64_t>(values.size());
  file.create_dataset(name, {.type = Hdf5Type::Float64, .shape = {count}, .chunk = {}});
  file.write(name, {0}, {count}, std::span<const double>(values));
}

FieldFacts facts_with_time(const std::vector<double>& values, const std::string& units, const std::string& calendar = "",
                           const TimeKeys& keys = {}) {
  const DataFolder folder;
  const auto path = write_file(folder, [&](Hdf5File& file) {
    add_axis(file, "time", values);
    if (!units.empty()) file.set_string("time", "units", units);
    if (!calendar.empty()) file.set_strings("time", "calendar", {calendar});
  });
  return FieldFile(path, nullptr, keys).facts();
}

constexpr int64_t kYear2017 = 1483228800;

TEST(ForeignTimesTest, UnitsAndCalendarsOfCfAreSeconds) {
  EXPECT_THAT(facts_with_time({1025628, 1025634, 1025640}, "hours since 1900-01-01 00:00:0.0", "gregorian").time,
              ElementsAre(kYear2017 + 43200, kYear2017 + 64800, kYear2017 + 86400));
  EXPECT_THAT(facts_with_time({0, 0.25, 0.5}, "days since 2017-01-01").time,
              ElementsAre(kYear2017, kYear2017 + 21600, kYear2017 + 43200));
  EXPECT_THAT(facts_with_time({0, 1800000, 3600000}, "milliseconds since 2017-01-01T00:00:00").time,
              ElementsAre(kYear2017, kYear2017 + 1800, kYear2017 + 3600));
  EXPECT_THAT(facts_with_time({0, 1, 2}, "Minutes Since 2017-01-01").time,
              ElementsAre(kYear2017, kYear2017 + 60, kYear2017 + 120));
  const FieldFacts months = facts_with_time({0, 1, 2}, "months since 1970-01-01", "360_day");
  EXPECT_THAT(months.time, ElementsAre(0, 30 * 86400, 60 * 86400));
  EXPECT_EQ(months.calendar, "360_day");
  EXPECT_EQ(facts_with_time({0, 1, 2}, "days since 2017-01-01", "standard").calendar, "proleptic_gregorian");
}

TEST(ForeignTimesTest, UnreadableTimesAreNamed) {
  const auto refusal = [](const std::vector<double>& values, const std::string& units, const std::string& calendar = "") {
    return [=] { facts_with_time(values, units, calendar); };
  };
  EXPECT_THAT(refusal({0, 1, 2}, "fortnights since 2017-01-01"),
              ThrowsMessage<DataError>(::testing::AllOf(HasSubstr("the times of a file cannot be read: path="),
                                                        HasSubstr("dataset=time, units=fortnights since 2017-01-01, calendar="),
                                                        HasSubstr("or set time_units"))));
  EXPECT_THAT(refusal({0, 1, 2}, "months since 2017-01-01"),
              ThrowsMessage<DataError>(HasSubstr("units=months since 2017-01-01")));
  EXPECT_THAT(refusal({0, 1, 2}, "days since 2017-01-01", "mayan"), ThrowsMessage<DataError>(HasSubstr("calendar=mayan")));
  EXPECT_THAT(refusal({0, 1, NAN}, "days since 2017-01-01"), ThrowsMessage<DataError>(HasSubstr("dataset=time, value=nan")));
  EXPECT_THAT(refusal({2, 1, 0}, "hours since 2017-01-01"),
              ThrowsMessage<DataError>(HasSubstr("the times of a file do not increase: path=")));
  EXPECT_THAT(refusal({0, 1, 1}, ""), ThrowsMessage<DataError>(HasSubstr("dataset=time, step=1, difference=0. Sort the file")));
  EXPECT_THAT(refusal({0, 1, 3}, "hours since 2017-01-01"), ThrowsMessage<DataError>(HasSubstr("not evenly spaced: path=")));
}

TEST(ForeignTimesTest, KeysStandInForUnitsThatAreNotThere) {
  const FieldFacts bare = facts_with_time({0, 6, 12}, "");
  EXPECT_THAT(bare.time, IsEmpty());
  EXPECT_EQ(bare.time_without_units, "time");
  EXPECT_THAT([&] { need_times(bare, "forcing", "the key forcing"); },
              ThrowsMessage<DataError>(HasSubstr("dataset=time, needed_by=forcing. Give the array the attribute units, or set "
                                                 "time_units (and time_calendar), as in --set 'time_units=hours since")));
  const TimeKeys keys{.units = "hours since 2017-01-01", .calendar = "noleap"};
  EXPECT_THAT(facts_with_time({0, 6, 12}, "", "", keys).time,
              ElementsAre(47 * 365 * 86400, 47 * 365 * 86400 + 21600, 47 * 365 * 86400 + 43200));
  EXPECT_THAT(facts_with_time({0, 6, 12}, "days since 1970-01-01", "", keys).time, ElementsAre(0, 6 * 86400, 12 * 86400))
      << "the file says it";
  EXPECT_THAT(
      [&] {
        facts_with_time({0, 6, 12}, "", "", {.units = "hours"});
      },
      ThrowsMessage<ConfigError>(HasSubstr("cannot read the key: time_units=hours")));
}

TEST(ForeignTimesTest, OurOwnFilesWithoutUnitsHoldSeconds) {
  const DataFolder folder;
  const auto path = write_file(folder, [](Hdf5File& file) {
    add_axis(file, "time", {0, 3600, 7200});
    file.set_string("/", "provenance", "{}");
  });
  EXPECT_THAT(FieldFile(path).facts().time, ElementsAre(0, 3600, 7200));
}

TEST(ForeignCoordinatesTest, AreKnownByNameStandardNameOrUnits) {
  struct Names {
    std::string latitude, attribute, value;
  };
  for (const Names& names : {Names{"lat", "", ""}, Names{"nav_lat", "", ""}, Names{"y", "standard_name", "latitude"},
                             Names{"rows", "units", "degrees_north"}, Names{"anything", "NAME", "Latitude"}}) {
    const DataFolder folder;
    const auto path = write_file(folder, [&](Hdf5File& file) {
      add_axis(file, names.latitude, {-30, -10, 10, 30});
      if (!names.attribute.empty()) file.set_string(names.latitude, names.attribute, names.value);
      add_axis(file, "lon", {0, 60, 120, 180, 240, 300});
    });
    const FieldFacts facts = FieldFile(path).facts();
    EXPECT_THAT(facts.latitude, ElementsAre(-30, -10, 10, 30)) << names.latitude;
    EXPECT_EQ(facts.longitude.size(), 6);
    EXPECT_EQ(facts.place_note, "");
  }
}

TEST(ForeignCoordinatesTest, DistancesAndRowNumbersAreNoLatitudes) {
  const DataFolder folder;
  const auto path = write_file(folder, [&](Hdf5File& file) {
    add_axis(file, "y", {0, 1, 2, 3});
    add_axis(file, "lat", {0, 1000, 2000, 3000});
    file.set_string("lat", "units", "m");
  });
  EXPECT_THAT(FieldFile(path).facts().latitude, IsEmpty());
  EXPECT_THAT(
      Era5Dataset({.folder = folder.path()}).warnings(),
      ElementsAre("The files do not say the latitudes of their rows: scores weight the rows as equally spaced from pole to "
                  "pole. An array latitude of one value for each row, in degrees, sets them."));
}

TEST(ForeignCoordinatesTest, FieldsAloneHaveAssumedLatitudesAndNoWarning) {
  const DataFolder folder;
  const auto path = write_file(folder, [](Hdf5File&) {});
  const Era5Dataset dataset({.folder = folder.path()});
  EXPECT_THAT(dataset.warnings(), IsEmpty());
  EXPECT_THAT(
      dataset.notes(),
      ElementsAre("The files hold nothing but fields: scores weight the rows as equally spaced from pole to pole. An array "
                  "latitude of one value for each row, in degrees, sets them."));
  EXPECT_THAT(notes_of({&dataset, &dataset}), ElementsAre(dataset.notes().front())) << "once for all data sets";
  write_file(folder, [&](Hdf5File& file) { add_axis(file, "lat", {-30, -10, 10, 30}); });
  EXPECT_THAT(Era5Dataset({.folder = folder.path()}).notes(), IsEmpty());
}

TEST(ForeignCoordinatesTest, PlacesOfPointsAreTakenWhereRowsAreParallels) {
  for (const double tilt : {0.0, 1.0}) {
    const DataFolder folder;
    const auto path = write_file(folder, [&](Hdf5File& file) {
      std::vector<double> values;
      for (int i = 0; i < 24; ++i) values.push_back(10 * (i / 6) + tilt * (i % 6));
      file.create_dataset("nav_lat", {.type = Hdf5Type::Float64, .shape = {4, 6}, .chunk = {}});
      file.write("nav_lat", {0, 0}, {4, 6}, std::span<const double>(values));
    });
    const FieldFacts facts = FieldFile(path).facts();
    if (tilt == 0) {
      EXPECT_THAT(facts.latitude, ElementsAre(0, 10, 20, 30));
    } else {
      EXPECT_THAT(facts.place_note, HasSubstr("(the array nav_lat changes along both axes): scores"));
    }
  }
}

TEST(ForeignCoordinatesTest, RadiansAreTurnedIntoDegreesAndOtherValuesRefused) {
  const DataFolder folder;
  const auto path = write_file(folder, [&](Hdf5File& file) {
    add_axis(file, "lat", {0, M_PI / 6, M_PI / 3, M_PI / 2});
    file.set_string("lat", "units", "radians");
  });
  EXPECT_TRUE(welkin::tests::close(FieldFile(path).facts().latitude[1], 30, kFp64, 4));
  write_file(folder, [&](Hdf5File& file) { add_axis(file, "lat", {0, 1000, 2000, 3000}); });
  EXPECT_THAT([&] { FieldFile{path}; },
              ThrowsMessage<DataError>(HasSubstr("not a valid latitude or longitude: path=" + path.string() + ", dataset=lat")));
}

TEST(ForeignNamesTest, UnitsOfAllChannelsAndNamesOfAnAttribute) {
  const DataFolder folder;
  const auto path = write_file(folder, [](Hdf5File& file) {
    file.set_strings("fields", "variable", {"t2m", "u10"});
    file.set_string("fields", "units", "1");
  });
  const FieldFacts facts = FieldFile(path).facts();
  EXPECT_THAT(facts.channel_names, ElementsAre("t2m", "u10"));
  EXPECT_THAT(facts.units, ElementsAre("1", "1"));
}

// A fill value of float64 in a file of float32, as h5py writes it.
std::filesystem::path write_filled(const DataFolder& folder) {
  return write_file(folder, [](Hdf5File& file) {
    file.set_number("fields", "_FillValue", 1e20);
    file.set_strings("fields", "channels", {"sst", "ice"});
    const std::vector<float> fills(6, 1e20f);
    file.write("fields", {1, 0, 0, 0}, {1, 1, 1, 6}, std::span<const float>(fills));
  });
}

// Every name that a coordinate may have, an axis may have too: a file whose axes stand in another order was taken as it lay.
TEST(ForeignNamesTest, AxesOfEveryKnownNameAreBroughtIntoOrder) {
  const DataFolder folder;
  for (const std::string axes : {R"("lats", "lons", "variables", "datetime")", R"("lat", "lon", "band", "prediction_timedelta")",
                                 R"("nav_lat", "nav_lon", "c", "T")", R"("lat", "lon", "feature", "time")"}) {
    const std::vector<float> values = counting(3 * 4 * 2 * 5);
    std::ofstream(folder / "a.raw", std::ios::binary)
        .write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * 4));
    std::ofstream(folder / "a.raw.json") << R"({"arrays": {"fields": {"shape": [3, 4, 2, 5], "dtype": "float32", "axes": [)"
                                         << axes << "]}}}";
    const FieldFile file(folder / "a.raw");
    EXPECT_EQ(file.facts().steps, 5) << axes;
    EXPECT_EQ(file.facts().channels, 2) << axes;
    EXPECT_EQ(file.facts().height, 3) << axes;
    std::vector<float> field(12);
    file.read(1, {1, 1}, {0, 0, 3, 4}, field, nullptr);
    EXPECT_EQ(field[5], 5 * 10 + 1 * 5 + 1) << axes;
  }
}

TEST(ForeignNamesTest, AxesOfUnknownNamesInAnotherOrderAreRefused) {
  const DataFolder folder;
  const auto write = [&](const std::string& axes) {
    const std::vector<float> values = counting(120);
    std::ofstream(folder / "a.raw", std::ios::binary).write(reinterpret_cast<const char*>(values.data()), 480);
    std::ofstream(folder / "a.raw.json") << R"({"arrays": {"fields": {"shape": [3, 4, 2, 5], "dtype": "float32", "axes": [)"
                                         << axes << "]}}}";
  };
  write(R"("lat", "lon", "feature", "hour")");
  EXPECT_THAT([&] { const FieldFile file(folder / "a.raw"); },
              ThrowsMessage<DataError>(
                  AllOf(HasSubstr("axes of fields whose order is not known: path="),
                        HasSubstr("axes=(lat, lon, feature, hour), shape=(3, 4, 2, 5). Name them time, channel, lat and lon"))));
  for (const char* in_order :
       {R"("hour", "feature", "lat", "lon")", R"("a", "b", "c", "d")", R"("dim_0", "dim_1", "dim_2", "dim_3")"}) {
    write(in_order);
    EXPECT_EQ(FieldFile(folder / "a.raw").facts().steps, 3) << in_order;
  }
}

TEST(ForeignMissingTest, FillValuesAreNanAndEndARun) {
  const DataFolder folder;
  const auto path = write_filled(folder);
  const Era5Dataset dataset({.folder = folder.path()});
  EXPECT_TRUE(dataset.spec().has_missing);
  EXPECT_EQ(
      dataset.warnings().front(),
      "The files declare missing values. They are NaN and handled by nan_policy: error and off refuse a sample that has them, "
      "hole gives such points no weight, mask puts the channel's mean in their place, report logs them.");
  EXPECT_EQ(nan_policy_for(dataset.spec(), NanPolicy::Off), NanPolicy::Error);
  EXPECT_EQ(nan_policy_for(dataset.spec(), NanPolicy::Mask), NanPolicy::Mask);
  EXPECT_EQ(nan_policy_for({}, NanPolicy::Off), NanPolicy::Off);
  std::vector<float> values(24);
  FieldFile(path).read_channel(1, 0, {0, 0, 4, 6}, values);
  EXPECT_TRUE(std::isnan(values[5]));
  EXPECT_EQ(values[6], 54);
}

// Values that are normalised on the way from the mapping, and those of the array.
TEST(ForeignMissingTest, FillValuesAreNanInOnePassToo) {
  const DataFolder folder;
  const FieldFile file(write_filled(folder));
  EXPECT_TRUE(file.fields().mapped().has_value());
  const ChannelOp op{.mean = 50, .std = 3};
  std::vector<float> wanted(24), found(24);
  file.read_channel(1, 0, {0, 0, 4, 6}, wanted);
  apply(op, wanted.data(), 24);
  file.read(1, {0, 1}, {0, 0, 4, 6}, found, &op);
  EXPECT_EQ(std::memcmp(found.data(), wanted.data(), 24 * sizeof(float)), 0);
  EXPECT_TRUE(std::isnan(found[0]));
}

TEST(ForeignMissingTest, StatisticsAndInspectLeaveThemOut) {
  const DataFolder folder;
  const auto path = write_filled(folder);
  const FolderStatistics statistics = compute_statistics(folder.path());
  EXPECT_EQ(statistics.moments[0].num_nonfinite(), 6);
  EXPECT_EQ(statistics.moments[0].max(), 119);
  EXPECT_DOUBLE_EQ(statistics.time_mean[0], (0 + 96) / 2.0);
  EXPECT_THAT(inspect_file(path), HasSubstr("channel 0 sst: min 0, max 119"));
  EXPECT_THAT(inspect_file(path), HasSubstr(", missing 6"));
}

TEST(ForeignMissingTest, AChannelOfMissingValuesHasNoStatistics) {
  const DataFolder folder;
  write_file(folder, [](Hdf5File& file) { file.set_number("fields", "valid_min", 500); });
  EXPECT_THAT([&] { compute_statistics(folder.path()); },
              ThrowsMessage<DataError>(HasSubstr("a channel of missing values only: path=")));
}

TEST(ForeignInspectTest, TimesAreDatesWithTheirGaps) {
  const DataFolder folder;
  const auto path = write_file(folder, [](Hdf5File& file) {
    add_axis(file, "time", {1025628, 1025634, 1025652});
    file.set_string("time", "units", "hours since 1900-01-01");
    add_axis(file, "lat", {-30, -10, 10, 30});
    file.set_string("lat", "CLASS", "DIMENSION_SCALE");
    file.set_string("lat", "NAME", "lat");
    file.set_string("lat", "long_name", "Breite in \xc2\xb0");
    add_axis(file, "nothing", {0, 0});
    file.set_string("nothing", "NAME", "This is a netCDF dimension but not a netCDF variable.         2");
  });
  const std::string text = inspect_file(path);
  EXPECT_THAT(text, HasSubstr("from 2017-01-01T12:00:00 to 2017-01-02T12:00:00, first step 21600 s, 1 gap, after "
                              "2017-01-01T18:00:00 (64800 s)\n"));
  EXPECT_THAT(text, HasSubstr("from -30 to 30\n"));
  EXPECT_THAT(text, HasSubstr("long_name = Breite in \xc2\xb0\n"));
  EXPECT_THAT(text, Not(HasSubstr("DIMENSION_SCALE")));
  EXPECT_THAT(text, Not(HasSubstr("nothing")));
}

}  // namespace
}  // namespace welkin::data::tests
