// SPDX-License-Identifier: Apache-2.0
// A whole ingest over fake files: orientation, statistics of the training part, policies, and that a failure leaves nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "data/formats/hdf5/hdf5_file.h"
#include "data/formats/npy_file.h"
#include "data/ingest/ingest.h"
#include "ingest_fake_component.h"
#include "number_close.h"

namespace {

using welkin::kFp32;
using welkin::tests::close;

namespace in = welkin::data::ingest;
namespace fake = welkin::data::ingest::fake;
using testing::ElementsAre;
using testing::HasSubstr;
using welkin::data::Hdf5File;

in::Report run_ingest(const in::Options& options) { return in::ingest(in::Component(fake::api()), options, {}); }

std::string failure_of(const in::Options& options) {
  try {
    run_ingest(options);
  } catch (const welkin::DataError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

in::Options options_for(const fake::Workspace& place) {
  in::Options options;
  options.inputs = {place.in()};
  options.out = place.out();
  return options;
}

std::vector<float> fields_of(const std::filesystem::path& path) {
  const auto file = Hdf5File::open(path);
  const auto shape = file.dataset("fields").shape;
  std::vector<float> values(static_cast<size_t>(shape[0] * shape[1] * shape[2] * shape[3]));
  file.read("fields", {0, 0, 0, 0}, shape, std::span<float>(values));
  return values;
}

std::vector<double> npy(const std::filesystem::path& path) { return welkin::data::NpyFile(path).read_doubles(1000); }

TEST(IngestRun, WritesNorthFirstInOrderOfTime) {
  fake::Workspace place("ingest-order");
  place.add("b.nc", fake::hourly({0, 1}));
  place.add("a.nc", fake::hourly({3, 2}));  // later times, and the wrong way round
  auto options = options_for(place);
  options.split.valid_last = 7200;
  const auto report = run_ingest(options);
  const auto train = place.out() / "train/2001.h5";
  EXPECT_THAT(fields_of(train), ElementsAre(0, 1, 2, 10, 11, 12, 1, 2, 3, 11, 12, 13));
  EXPECT_THAT(fields_of(place.out() / "valid/2001.h5"), ElementsAre(2, 3, 4, 12, 13, 14, 3, 4, 5, 13, 14, 15));
  const auto file = Hdf5File::open(train);
  EXPECT_THAT(file.read_doubles("latitude"), ElementsAre(50, 40));
  EXPECT_THAT(file.read_integers("time"), ElementsAre(978307200, 978307200 + 3600));
  EXPECT_THAT(file.strings("fields", "channels"), ElementsAre("t2m"));
  EXPECT_THAT(file.strings("fields", "units"), ElementsAre("K"));
  EXPECT_THAT(file.strings("time", "calendar"), ElementsAre("proleptic_gregorian"));
  EXPECT_THAT(file.strings("/", "provenance").at(0), HasSubstr("\"name\": \"a.nc\""));
  EXPECT_TRUE(file.dataset("fields").offset.has_value());  // contiguous: can be mapped
  EXPECT_THAT(report.lines.back(), HasSubstr("channels=1: t2m"));
}

TEST(IngestRun, StatisticsAreOfTheTrainingPart) {
  fake::Workspace place("ingest-statistics");
  place.add("a.nc", fake::hourly({0, 1, 2, 3, 1000, 1001}));
  auto options = options_for(place);
  options.split.valid_from = "2001-02-01";
  run_ingest(options);
  EXPECT_TRUE(close(npy(place.out() / "stats/global_means.npy").at(0), 1.5 + 5 + 1, kFp32, 1));
  // Hours, rows and columns are independent: 5/4 + 25 + 2/3.
  EXPECT_TRUE(close(npy(place.out() / "stats/global_stds.npy").at(0), std::sqrt(1.25 + 25 + 2.0 / 3), kFp32, 1));
  EXPECT_THAT(npy(place.out() / "stats/time_means.npy"), ElementsAre(1.5, 2.5, 3.5, 11.5, 12.5, 13.5));
  EXPECT_THAT(welkin::data::NpyFile(place.out() / "stats/time_means.npy").header().shape, ElementsAre(1, 1, 2, 3));
}

fake::File with_hole() {
  auto file = fake::hourly({0, 1, 2, 3});
  const auto whole = file.value;
  file.value = [whole](const welkin_ingest_plane& plane, int64_t j, int64_t i) {
    return plane.time == 1 && j == 1 && i == 2 ? std::numeric_limits<float>::quiet_NaN() : whole(plane, j, i);
  };
  return file;
}

TEST(IngestRun, MissingPolicies) {
  fake::Workspace place("ingest-missing");
  place.add("a.nc", with_hole());
  auto options = options_for(place);
  EXPECT_THAT(failure_of(options), HasSubstr("points without a value: channel=t2m, time=2001-01-01T01:00:00, points=1 of 6"));
  EXPECT_FALSE(std::filesystem::exists(place.out()));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(place.path()), {}), 1);  // only the input
  const double mean = (24 * 7.5 - 3.0) / 23;
  const auto at = [&](const char* name) {
    options.out = place.path() / name;
    run_ingest(options);
    return fields_of(options.out / "train/2001.h5");
  };
  options.missing = in::MissingPolicy::Nan;
  EXPECT_TRUE(std::isnan(at("nan")[6 + 2]));
  options.missing = in::MissingPolicy::Mean;
  EXPECT_TRUE(close(at("mean")[6 + 2], mean, kFp32, 1));
  options.missing = in::MissingPolicy::Mask;
  const auto masked = at("mask");  // the point is missing at one time alone: the mask changes with time, and is a channel
  ASSERT_EQ(masked.size(), 48u);
  EXPECT_TRUE(std::isnan(masked[12 + 2]));
  EXPECT_EQ(masked[18 + 2], 0.0f);
  EXPECT_EQ(masked[18 + 1], 1.0f);
  const auto file = Hdf5File::open(options.out / "train/2001.h5");
  EXPECT_THAT(file.strings("fields", "channels"), ElementsAre("t2m", "mask"));
  EXPECT_THAT(file.strings("fields", "mask_of"), ElementsAre("", "t2m"));
  EXPECT_THAT(file.strings("fields", "roles"), ElementsAre("prognostic", "forcing"));
  EXPECT_THAT(file.strings("fields", "missing"), ElementsAre("hole"));
  EXPECT_FALSE(file.has_dataset("static"));
  EXPECT_TRUE(close(npy(options.out / "stats/global_means.npy")[0], mean, kFp32, 1));
  EXPECT_THAT(npy(options.out / "stats/global_stds.npy")[1], 1.0);
}

// Two channels at sea and one without holes; a land mask without a time.
TEST(IngestRun, OneMaskForAllChannelsThatShareIt) {
  fake::Workspace place("ingest-masks");
  auto file = fake::hourly({0, 1, 2});
  for (const char* name : {"sst", "ice"}) file.variables.push_back(fake::variable(name, "K"));
  for (const int32_t variable : {1, 2}) {
    for (const double hour : {0.0, 1.0, 2.0})
      file.planes.push_back({variable, 0, 0, hour, static_cast<int64_t>(file.planes.size())});
  }
  const auto whole = file.value;
  file.value = [whole](const welkin_ingest_plane& plane, int64_t j, int64_t i) {
    return plane.variable > 0 && i == 0 ? std::numeric_limits<float>::quiet_NaN() : whole(plane, j, i);
  };
  place.add("a.nc", file);
  auto options = options_for(place);
  options.missing = in::MissingPolicy::Mask;
  options.roles = {"ice=diagnostic"};
  const auto report = run_ingest(options);
  const auto written = Hdf5File::open(place.out() / "train/2001.h5");
  EXPECT_THAT(written.strings("fields", "channels"), ElementsAre("t2m", "sst", "ice"));
  EXPECT_THAT(written.strings("fields", "roles"), ElementsAre("prognostic", "prognostic", "diagnostic"));
  EXPECT_THAT(written.strings("static", "channels"), ElementsAre("mask"));
  EXPECT_THAT(written.read_doubles("static"), ElementsAre(0, 1, 1, 0, 1, 1));
  EXPECT_THAT(report.lines,
              testing::Contains(HasSubstr("mask mask: channels=sst ice, without a value=2 of 6 points at all times")));
  EXPECT_THAT(npy(place.out() / "stats/global_mins.npy").at(0), 0);
  options.out = place.path() / "static";
  options.roles = {"t2m=static"};
  EXPECT_THAT(failure_of(options), HasSubstr("a static channel changes: channel=t2m, time=2001-01-01T01:00:00"));
}

TEST(IngestRun, ConstantChannelsAreKeptOrDropped) {
  fake::Workspace place("ingest-constant");
  auto file = fake::hourly({0, 1, 2});
  file.variables.push_back(fake::variable("ssrd", "J m-2"));
  for (const double hour : {0.0, 1.0, 2.0}) file.planes.push_back({1, 0, 0, hour, static_cast<int64_t>(file.planes.size())});
  const auto whole = file.value;
  file.value = [whole](const welkin_ingest_plane& plane, int64_t j, int64_t i) {
    return plane.variable == 1 ? 0.1f : whole(plane, j, i);
  };
  place.add("a.nc", file);
  auto options = options_for(place);
  const auto report = run_ingest(options);
  EXPECT_THAT(report.lines, testing::Contains(HasSubstr("constant in the training part: channel=ssrd, value=0.1")));
  EXPECT_EQ(npy(place.out() / "stats/global_stds.npy").at(1), 1.0);
  options.out = place.path() / "dropped";
  options.constant = in::ConstantPolicy::Drop;
  run_ingest(options);
  EXPECT_THAT(Hdf5File::open(options.out / "train/2001.h5").strings("fields", "channels"), ElementsAre("t2m"));
}

TEST(IngestRun, DuplicatesNeedADecision) {
  fake::Workspace place("ingest-duplicates");
  place.add("a.nc", fake::hourly({0, 1, 2}));
  auto second = fake::hourly({2, 3});
  second.value = [](const welkin_ingest_plane&, int64_t, int64_t) { return -1.0f; };
  place.add("b.nc", second);
  auto options = options_for(place);
  EXPECT_THAT(
      failure_of(options),
      HasSubstr(
          "one field occurs twice: channel=t2m, time=2001-01-01T02:00:00, member=0, files=a.nc b.nc. Choose with --duplicates"));
  options.duplicates = in::DuplicatePolicy::First;
  run_ingest(options);
  EXPECT_EQ(fields_of(place.out() / "train/2001.h5")[12], 2.0f);
  options.out = place.path() / "last";
  options.duplicates = in::DuplicatePolicy::Last;
  run_ingest(options);
  EXPECT_EQ(fields_of(options.out / "train/2001.h5")[12], -1.0f);
}

TEST(IngestRun, IncompleteTimesAreLeftOutAndEndFiles) {
  fake::Workspace place("ingest-incomplete");
  place.add("a.nc", fake::hourly({0, 1, 2, 3, 4}));
  auto other = fake::hourly({0, 1, 3, 4, 5});
  other.variables = {fake::variable("u10", "m s-1")};
  place.add("b.nc", other);
  auto options = options_for(place);
  const auto report = run_ingest(options);
  EXPECT_THAT(report.lines,
              testing::Contains(HasSubstr(
                  "incomplete times=2, member=0, first=2001-01-01T02:00:00 without u10; 2001-01-01T05:00:00 without t2m")));
  EXPECT_EQ(fields_of(place.out() / "train/segment0000_2001.h5").size(), 2u * 2 * 6);
  EXPECT_EQ(fields_of(place.out() / "train/segment0001_2001.h5").size(), 2u * 2 * 6);
}

TEST(IngestRun, MembersAreSequences) {
  fake::Workspace place("ingest-members");
  auto file = fake::hourly({0, 1});
  const auto planes = file.planes;
  for (auto plane : planes) {
    plane.member = 3;
    plane.address = static_cast<int64_t>(file.planes.size());
    file.planes.push_back(plane);
  }
  file.value = [](const welkin_ingest_plane& plane, int64_t, int64_t) {
    return static_cast<float>(100 * plane.member + plane.time);
  };
  place.add("a.nc", file);
  auto options = options_for(place);
  run_ingest(options);
  EXPECT_EQ(fields_of(place.out() / "train/member003_2001.h5")[6], 301.0f);
  options.out = place.path() / "one";
  options.members = {3};
  run_ingest(options);
  EXPECT_FALSE(std::filesystem::exists(options.out / "train/member000_2001.h5"));
  options.out = place.path() / "none";
  options.members = {5};
  EXPECT_THAT(failure_of(options), HasSubstr("no such member: member=5, there=0 3"));
}

TEST(IngestRun, CropsFromTheNorthWest) {
  fake::Workspace place("ingest-crop");
  place.add("a.nc", fake::hourly({0, 1}));
  auto options = options_for(place);
  options.crop = {.height = 1, .width = 2, .top = 1, .left = 1};
  run_ingest(options);
  EXPECT_THAT(fields_of(place.out() / "train/2001.h5"), ElementsAre(11, 12, 12, 13));
  EXPECT_THAT(Hdf5File::open(place.out() / "train/2001.h5").read_doubles("longitude"), ElementsAre(1, 2));
  options.out = place.path() / "patch";
  options.crop = {};
  options.patch = 2;
  run_ingest(options);
  EXPECT_EQ(fields_of(options.out / "train/2001.h5").size(), 2u * 2 * 2);
  options.out = place.path() / "large";
  options.patch = 0;
  options.crop = {.height = 3, .width = 2, .top = 0, .left = 0};
  EXPECT_THAT(failure_of(options), HasSubstr("the crop does not fit the grid: crop=3x2 at row 0, column 0, grid=2x3"));
}

// value = longitude modulo 360, plus the hour in thousands; the longitudes as the file has them.
fake::File around_the_globe(double hour, std::vector<double> longitude) {
  fake::File file = fake::hourly({hour});
  file.grids = {{.latitude = {50, 40}, .longitude = longitude}};
  file.value = [longitude](const welkin_ingest_plane& plane, int64_t, int64_t i) {
    const double degrees = longitude[static_cast<size_t>(i)];
    return static_cast<float>(plane.time * 1000 + (degrees < 0 ? degrees + 360 : degrees));
  };
  return file;
}

TEST(IngestRun, LongitudesOfOneCircleAreOneGrid) {
  fake::Workspace place("ingest-circle");
  place.add("a.nc", around_the_globe(0, {-180, -90, 0, 90}));
  place.add("b.nc", around_the_globe(1, {0, 90, 180, 270}));
  place.add("c.nc", around_the_globe(2, {270, 180, 90, 0}));
  place.add("d.nc", around_the_globe(3, {180, 270, 0, 90}));
  auto options = options_for(place);
  options.crop = {.height = 1, .width = 4, .top = 0, .left = 0};
  const auto report = run_ingest(options);
  EXPECT_THAT(fields_of(place.out() / "train/2001.h5"),
              ElementsAre(180, 270, 0, 90, 1180, 1270, 1000, 1090, 2180, 2270, 2000, 2090, 3180, 3270, 3000, 3090));
  EXPECT_THAT(Hdf5File::open(place.out() / "train/2001.h5").read_doubles("longitude"), ElementsAre(-180, -90, 0, 90));
  EXPECT_THAT(report.lines,
              testing::Contains("turned to the longitudes of the first file: path=b.nc, begins at 0 E, written from -180 E"));
  place.add("e.nc", around_the_globe(4, {0, 90, 180, 260}));  // another grid stays one
  options.out = place.path() / "other";
  EXPECT_THAT(failure_of(options), HasSubstr("the channels lie on different grids"));
}

TEST(IngestRun, ARepeatedLongitudeIsNamed) {
  fake::Workspace place("ingest-repeated");
  place.add("a.nc", around_the_globe(0, {0, 90, 180, 270, 360}));
  EXPECT_THAT(failure_of(options_for(place)), HasSubstr("the last longitude of a file repeats the first: path="));
  place.add("a.nc", around_the_globe(0, {0, 90, 80, 270}));
  EXPECT_THAT(failure_of(options_for(place)), HasSubstr("the latitudes or longitudes of a file are not in order: path="));
}

TEST(IngestRun, FoldersInsideAreReadOnRequest) {
  fake::Workspace place("ingest-recursive");
  place.add("a.nc", fake::hourly({0, 1}));
  std::filesystem::create_directories(place.in() / "more/still");
  place.add("more/still/b.nc", {});
  fake::files()["b.nc"] = fake::hourly({2, 3});
  std::ofstream(place.in() / "c.nc") << "<html>404</html>";
  auto options = options_for(place);
  const auto flat = run_ingest(options);
  EXPECT_EQ(fields_of(place.out() / "train/2001.h5").size(), 2u * 6);
  EXPECT_THAT(flat.lines,
              testing::Contains("warning: not looked into: folder=" + (place.in() / "more").string() + " (--recursive does)"));
  EXPECT_THAT(flat.lines, testing::Contains("warning: left out: path=" + (place.in() / "c.nc").string() +
                                            ", reason=its content is neither GRIB nor netCDF nor HDF5"));
  options.out = place.path() / "deep";
  options.recursive = true;
  run_ingest(options);
  EXPECT_EQ(fields_of(options.out / "train/2001.h5").size(), 4u * 6);
}

TEST(IngestRun, TimesThatCannotBeReadLeaveAVariableOut) {
  fake::Workspace place("ingest-units");
  auto file = fake::hourly({0, 1});
  file.variables.push_back(fake::variable("odd"));
  fake::put(file.variables[1].time_units, "fortnights since 2001-01-01");
  file.planes.push_back({1, 0, 0, 0, 2});
  place.add("a.nc", file);
  auto options = options_for(place);
  EXPECT_THAT(run_ingest(options).lines, testing::Contains(HasSubstr("left out: variable=odd, path=a.nc, reason=")));
  options.out = place.path() / "named";
  options.variables = {{"odd", ""}};
  EXPECT_THAT(failure_of(options), HasSubstr("a variable cannot be taken: variable=odd, path=a.nc, reason="));
}

TEST(IngestRun, AnExistingOutputIsNotTouched) {
  fake::Workspace place("ingest-existing");
  place.add("a.nc", fake::hourly({0, 1}));
  std::filesystem::create_directories(place.out());
  EXPECT_THAT(failure_of(options_for(place)), HasSubstr("the output exists already"));
}

TEST(IngestRun, LicenceLinesOfTheSourceAreCopied) {
  fake::Workspace place("ingest-licence");
  place.add("a.nc", fake::hourly({0, 1}));
  std::ofstream(place.in() / "SOURCE.md") << "# x\n- Licence: free,\n  with attribution.\n- Shape: 2\n- `LICENSE` 12\n";
  auto options = options_for(place);
  options.licence = "Mine.";
  run_ingest(options);
  EXPECT_EQ(Hdf5File::open(place.out() / "train/2001.h5").strings("/", "licence").at(0),
            "Mine.\n- Licence: free,\n  with attribution.\n");
}

TEST(IngestComponent, AbsenceHasARemedy) {
  try {
    in::Component component("/nowhere/libwelkin_ingest.so");
    FAIL();
  } catch (const welkin::DataError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("[ingest] the GRIB and netCDF component is not installed: library=/nowhere/libwelkin_ingest.so. "
                          "Install libeccodes-dev and libnetcdf-dev"));
  }
}

TEST(IngestComponent, WhatItSaysIsChecked) {
  fake::Workspace place("ingest-hostile");
  const auto expect_refusal = [&](const char* why, const std::function<void(fake::File&)>& spoil) {
    auto file = fake::hourly({0, 1});
    spoil(file);
    place.add("a.nc", file);
    EXPECT_THAT(failure_of(options_for(place)), HasSubstr(why));
  };
  expect_refusal("a field without sense", [](fake::File& f) { f.planes[1].variable = 1; });
  expect_refusal("a field without sense", [](fake::File& f) { f.planes[0].level = std::numeric_limits<double>::infinity(); });
  expect_refusal("a field without sense", [](fake::File& f) { f.planes[0].address = -1; });
  expect_refusal("a variable without sense", [](fake::File& f) { std::ranges::fill(f.variables[0].units, 'x'); });
  expect_refusal("a variable without sense", [](fake::File& f) { f.variables[0].grid = 1; });
  expect_refusal("a grid of impossible size", [](fake::File& f) { f.grids[0].latitude.clear(); });
  expect_refusal("not a valid time", [](fake::File& f) { f.planes[0].time = std::numeric_limits<double>::quiet_NaN(); });
  expect_refusal("not in order", [](fake::File& f) { f.grids[0].latitude = {40, 40}; });
  expect_refusal("not in order", [](fake::File& f) { f.grids[0].longitude = {0, std::numeric_limits<double>::quiet_NaN(), 2}; });
}

}  // namespace
