// SPDX-License-Identifier: Apache-2.0
// The day of a climatology that a time has, by calendar and by the number of its days.
#include "data/forecast/climatology.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "data/formats/array_writer.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

// One point whose value is the number of the day.
class ClimatologyDays : public ::testing::Test {
 protected:
  Climatology of_days(int64_t count, const std::string& calendar) {
    std::vector<double> days(static_cast<size_t>(count));
    std::iota(days.begin(), days.end(), 1.0);
    OutputFile output;
    output.arrays.push_back({.name = "t2m",
                             .shape = {1, count, 1, 1},
                             .chunk = {},
                             .dtype = Dtype::F64,
                             .codecs = {},
                             .axes = {"hour", "dayofyear", "latitude", "longitude"},
                             .attributes = {}});
    add_coordinate(output, "hour", {0}, {});
    add_coordinate(output, "dayofyear", days, {{"calendar", text_attribute(calendar)}});
    add_coordinate(output, "latitude", {0}, latitude_attributes());
    add_coordinate(output, "longitude", {0}, longitude_attributes());
    const std::filesystem::path path = folder_ / (calendar + std::to_string(count) + ".nc");
    const auto writer = make_netcdf_writer(path, output);
    writer->write(0, {{0, 0, 0, 0}, {1, count, 1, 1}}, std::as_bytes(std::span(days)));
    writer->finish();
    return Climatology(path);
  }

  static float day_of(const Climatology& climatology, Calendar calendar, const char* date) {
    std::vector<float> value(1);
    climatology.read("t2m", calendar, parse_date(date, calendar), value);
    return value[0];
  }

  DataFolder folder_;
};

TEST_F(ClimatologyDays, AYearOf360DaysHasItsOwnDaysOrStretchedOnes) {
  const Climatology own = of_days(360, "360_day"), stretched = of_days(366, "360_day");
  EXPECT_EQ(day_of(own, Calendar::Day360, "2001-01-01"), 1);
  EXPECT_EQ(day_of(own, Calendar::Day360, "2001-07-01"), 181);
  EXPECT_EQ(day_of(own, Calendar::Day360, "2001-12-30"), 360);
  EXPECT_EQ(day_of(stretched, Calendar::Day360, "2001-07-01"), 184);
  EXPECT_EQ(day_of(stretched, Calendar::Day360, "2001-12-30"), 365);
}

TEST_F(ClimatologyDays, OtherYearsAreCounted) {
  const Climatology leap = of_days(366, "proleptic_gregorian"), common = of_days(365, "noleap");
  EXPECT_EQ(day_of(leap, Calendar::ProlepticGregorian, "2004-12-31"), 366);
  EXPECT_EQ(day_of(leap, Calendar::ProlepticGregorian, "2001-03-01"), 60);
  EXPECT_EQ(day_of(common, Calendar::NoLeap, "2004-03-01"), 60);
  EXPECT_EQ(day_of(common, Calendar::ProlepticGregorian, "2004-12-31"), 365);
}

}  // namespace
}  // namespace welkin::data::tests
