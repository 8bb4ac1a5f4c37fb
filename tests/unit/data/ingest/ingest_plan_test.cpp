// SPDX-License-Identifier: Apache-2.0
// What is decided before a value is read: formats, options, steps and gaps, channels and their names, parts and files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/hash.h"
#include "data/ingest/channels.h"
#include "data/ingest/option_text.h"
#include "data/ingest/sequences.h"
#include "data/ingest/source/format.h"
#include "data/ingest/source/netcdf3_header.h"
#include "data/ingest/split.h"
#include "data/ingest/time_axis.h"

namespace {

namespace in = welkin::data::ingest;
using testing::ElementsAre;
using testing::HasSubstr;
using welkin::data::Calendar;

constexpr int64_t kHour = 3600;

template <typename Body>
std::string message_of(Body&& body) {
  try {
    body();
  } catch (const welkin::Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

in::Format format(std::string_view head) { return in::format_of(welkin::as_byte_span(head)); }

TEST(IngestFormat, IsKnownByContent) {
  EXPECT_EQ(format("GRIB..."), in::Format::Grib);
  EXPECT_EQ(format("\x01\r\r\n307\nTTAA00 ECMF GRIB..."), in::Format::Grib);
  EXPECT_EQ(format(std::string_view("CDF\x02zzzz")), in::Format::Netcdf3);
  EXPECT_EQ(format("CDF\x07zzzz"), in::Format::Unknown);
  EXPECT_EQ(format("\x89HDF\r\n\x1a\n..."), in::Format::Hdf5);
  EXPECT_EQ(format(std::string(1024, ' ') + "\x89HDF\r\n\x1a\n"), in::Format::Hdf5);
  EXPECT_EQ(format("CD"), in::Format::Unknown);
  EXPECT_EQ(format(""), in::Format::Unknown);
}

std::string word(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

std::string name(char letter) { return word(1) + std::string{letter, 0, 0, 0}; }

// A netCDF-3 file: dimension x = 3, attribute a = 7, variable v(x) of short.
std::string classic_file() {
  std::string header = "CDF\x01" + word(0);
  header += word(10) + word(1) + name('x') + word(3);
  header += word(12) + word(1) + name('a') + word(4) + word(1) + word(7);
  header += word(11) + word(1) + name('v') + word(1) + word(0) + word(0) + word(0) + word(3) + word(8);
  return header + word(static_cast<uint32_t>(header.size()) + 4) + std::string(8, '\1');
}

// Dimension t without limit, variables v, w, ... (t) of short, two records.
std::string record_file(uint32_t variables) {
  std::string header = "CDF\x01" + word(2);
  header += word(10) + word(1) + name('t') + word(0) + word(0) + word(0) + word(11) + word(variables);
  const auto values = static_cast<uint32_t>(header.size()) + 36 * variables;
  for (uint32_t i = 0; i < variables; ++i) {
    header += name(static_cast<char>('v' + i)) + word(1) + word(0) + word(0) + word(0) + word(3) + word(4) + word(values + 4 * i);
  }
  // Two shorts, each padded to four bytes unless it is alone; the last value needs no padding.
  return header + std::string(variables == 1 ? 4 : 2 * variables * 4 - 2, '\1');
}

std::string problem_of(const std::string& file) { return in::netcdf3_problem(welkin::as_byte_span(file), file.size()); }

TEST(IngestNetcdf3Header, EveryDamageIsFoundOrHarmless) {
  const std::string file = classic_file();
  EXPECT_EQ(problem_of(file), "");
  for (size_t length = 0; length + 2 < file.size(); ++length) EXPECT_NE(problem_of(file.substr(0, length)), "") << length;
  const auto damaged = [&](size_t place, char value) {
    auto copy = file;
    copy[place] = value;
    return problem_of(copy);
  };
  EXPECT_EQ(damaged(8 + 3, 11), "a list has the wrong tag");
  EXPECT_EQ(damaged(12, 127), "a list is longer than the file");
  EXPECT_EQ(damaged(16, 127), "a name or attribute goes beyond the end of the file");
  EXPECT_EQ(damaged(24, 127), "a variable has more values than the file holds");
  EXPECT_EQ(damaged(47, 99), "an unknown type of values");
  EXPECT_EQ(damaged(48, 127), "an attribute goes beyond the end of the file");
  for (size_t place = 4; place < file.size(); ++place) {  // no crash, no hang: the sanitizers watch
    for (int value = 0; value < 256; value += 5) damaged(place, static_cast<char>(value));
  }
}

TEST(IngestNetcdf3Header, RecordsThatWereCutOffAreFound) {
  for (const uint32_t variables : {1, 2}) {
    const std::string file = record_file(variables);
    EXPECT_EQ(problem_of(file), "");
    for (size_t length = 0; length < file.size(); ++length) EXPECT_NE(problem_of(file.substr(0, length)), "") << length;
  }
}

TEST(IngestOptions, AreReadFromText) {
  const auto choices = in::parse_choices({"t2m", "2t:temperature"});
  EXPECT_EQ(choices[0].source, "t2m");
  EXPECT_EQ(choices[0].name, "");
  EXPECT_EQ(choices[1].source, "2t");
  EXPECT_EQ(choices[1].name, "temperature");
  const auto crop = in::parse_crop("32x48+1+2");
  EXPECT_EQ(crop.height, 32);
  EXPECT_EQ(crop.width, 48);
  EXPECT_EQ(crop.top, 1);
  EXPECT_EQ(crop.left, 2);
  EXPECT_THAT(in::parse_shape("1x64x512"), ElementsAre(1, 64, 512));
  for (const char* bad : {"", "32", "32x", "x48", "32x48+1", "0x4", "-1x4", "32x48x2", "99999999999x1"}) {
    EXPECT_THROW(in::parse_crop(bad), welkin::ConfigError) << bad;
  }
  EXPECT_THROW(in::parse_choices({":x"}), welkin::ConfigError);
  EXPECT_THROW(in::parse_choices({"x:"}), welkin::ConfigError);
}

TEST(IngestTimeAxis, FindsStepAndGaps) {
  const std::vector<int64_t> times{0, kHour, 2 * kHour, 5 * kHour, 6 * kHour, 6 * kHour + 60};
  const auto step = in::find_step(times, Calendar::ProlepticGregorian);
  EXPECT_EQ(step.seconds, kHour);
  EXPECT_EQ(in::describe(step), "1 h");
  const auto segments = in::find_segments(times, step, Calendar::ProlepticGregorian);
  ASSERT_EQ(segments.size(), 3u);
  EXPECT_EQ(segments[0].size(), 3);
  EXPECT_EQ(segments[1].begin, 3);
  EXPECT_EQ(segments[1].end, 5);
  const auto gaps = in::find_gaps(times, step, Calendar::ProlepticGregorian);
  ASSERT_EQ(gaps.size(), 2u);
  EXPECT_EQ(gaps[0].missing, 2);
  EXPECT_EQ(gaps[1].missing, 0);  // off the grid of steps
}

TEST(IngestTimeAxis, MonthsAreOneStep) {
  std::vector<int64_t> times;
  for (int month = 1; month <= 12; ++month)
    times.push_back(welkin::data::to_seconds(Calendar::NoLeap, {2001, month, month == 2 ? 15 : 16, 43200}));
  times.erase(times.begin() + 6);  // July
  const auto step = in::find_step(times, Calendar::NoLeap);
  EXPECT_EQ(step.months, 1);
  EXPECT_EQ(in::find_segments(times, step, Calendar::NoLeap).size(), 2u);
  EXPECT_EQ(in::find_gaps(times, step, Calendar::NoLeap).at(0).missing, 1);
}

// t on 500 and 850 hPa, wind direction, and a land mask without time; on one grid.
in::Inventory small_inventory() {
  in::Inventory inventory;
  inventory.grids.push_back({{50, 40}, {0, 1, 2}});
  inventory.layouts.push_back({});
  inventory.variables = {{.name = "t",
                          .other_name = "130",
                          .long_name = "",
                          .units = "K",
                          .level_type = "isobaricInhPa",
                          .level_kind = WELKIN_INGEST_LEVEL_HPA},
                         {.name = "wd10", .other_name = "", .long_name = "", .units = "degrees", .level_type = ""},
                         {.name = "lsm", .other_name = "", .long_name = "", .units = "1", .level_type = ""}};
  inventory.variables[2].has_time = false;
  inventory.fields = {{0, 0, 0, 0, 500, 0, 0}, {0, 0, 0, 0, 850, 0, 1}, {0, 1, 0, 0, 0, 0, 2}, {0, 2, 0, 0, 0, 0, 3}};
  return inventory;
}

std::vector<std::string> channel_names_of(const in::ChannelPlan& plan) {
  std::vector<std::string> out;
  for (const auto& channel : plan.channels) out.push_back(channel.name);
  return out;
}

TEST(IngestChannels, LevelsBecomeChannels) {
  const auto inventory = small_inventory();
  in::Options options;
  const auto all = in::plan_channels(inventory, options);
  EXPECT_THAT(channel_names_of(all), ElementsAre("t500", "t850", "wd10"));
  ASSERT_EQ(all.notes.size(), 1u);
  EXPECT_THAT(all.notes[0], HasSubstr("variable=lsm"));
  options.variables = in::parse_choices({"wd10:dir", "130:T", "lsm"});
  options.levels = {850};
  options.circular = {"dir"};
  EXPECT_THAT(channel_names_of(in::plan_channels(inventory, options)), ElementsAre("dir_sin", "dir_cos", "T850", "lsm"));
  options = {};
  options.variables = in::parse_choices({"t850", "t500:mid"});
  EXPECT_THAT(channel_names_of(in::plan_channels(inventory, options)), ElementsAre("t850", "mid"));
}

TEST(IngestChannels, ErrorsNameTheChoices) {
  auto inventory = small_inventory();
  in::Options options;
  options.variables = in::parse_choices({"t855"});
  EXPECT_EQ(message_of([&] { in::plan_channels(inventory, options); }),
            "[ingest] no field of this name and these levels: variable=t855. Did you mean: t850.");
  options = {};
  options.circular = {"t500"};
  EXPECT_THAT(message_of([&] { in::plan_channels(inventory, options); }), HasSubstr("must be in degrees: channel=t500, units=K"));
  options.circular = {"wind"};
  EXPECT_THAT(message_of([&] { in::plan_channels(inventory, options); }), HasSubstr("no such channel: circular=wind"));
  options = {};
  options.variables = in::parse_choices({"t", "t500"});
  EXPECT_THAT(message_of([&] { in::plan_channels(inventory, options); }), HasSubstr("two channels of one name: channel=t500"));
  options.variables = in::parse_choices({"lsm"});
  EXPECT_THAT(message_of([&] { in::plan_channels(inventory, options); }), HasSubstr("no selected channel has a time"));
  options = {};
  inventory.grids.push_back({{50, 40, 30}, {0, 1}});
  inventory.variables[1].grid = 1;
  EXPECT_THAT(message_of([&] { in::plan_channels(inventory, options); }),
              HasSubstr("different grids: channel=t500, grid=2x3 from 50 N 0 E, channel=wd10, grid=3x2 from 50 N 0 E"));
}

TEST(IngestChannels, LevelsThatAreNotThereAreNamed) {
  auto inventory = small_inventory();
  in::Options options;
  options.levels = {500, 333};
  EXPECT_EQ(message_of([&] { in::plan_channels(inventory, options); }),
            "[ingest] no selected variable has this level: level=333. Choose among the levels that there are: t: 500 850.");
  inventory.variables.push_back(inventory.variables[0]);
  inventory.variables[3].name = "u";
  inventory.fields.push_back({0, 3, 0, 0, 500, 0, 4});
  options.levels = {500, 850};
  const auto plan = in::plan_channels(inventory, options);
  EXPECT_THAT(channel_names_of(plan), ElementsAre("t500", "t850", "wd10", "u500"));
  EXPECT_EQ(plan.notes.front(), "not there: variable=u, levels=850; it has 500");
  options.levels = {1000};
  EXPECT_THAT(message_of([&] { in::plan_channels(inventory, options); }), HasSubstr("there are: t: 500 850; u: 500."));
  options.variables = in::parse_choices({"wd10"});
  EXPECT_THAT(message_of([&] { in::plan_channels(inventory, options); }),
              HasSubstr("level=1000. Choose among the levels that there are: none."));
}

TEST(IngestChannels, WhyNothingCanBeTaken) {
  in::Inventory inventory;
  EXPECT_EQ(message_of([&] { in::plan_channels(inventory, {}); }),
            "[ingest] no field on latitude and longitude is selected. The files hold no variables.");
  inventory.left_out = {{"T2", "wrf.nc", "its latitude and longitude (XLAT, XLONG) have two dimensions"},
                        {"Times", "wrf.nc", "it holds text"}};
  EXPECT_EQ(message_of([&] { in::plan_channels(inventory, {}); }),
            "[ingest] no field on latitude and longitude is selected. Not taken: T2 (wrf.nc): its latitude and longitude (XLAT, "
            "XLONG) have two dimensions; Times (wrf.nc): it holds text.");
  in::Options options;
  options.variables = in::parse_choices({"T2"});
  EXPECT_EQ(
      message_of([&] { in::plan_channels(inventory, options); }),
      "[ingest] a variable cannot be taken: variable=T2, path=wrf.nc, reason=its latitude and longitude (XLAT, XLONG) have two "
      "dimensions. Choose another, or bring it onto latitude and longitude first.");
}

TEST(IngestChannels, DegreesBecomeSineAndCosine) {
  const std::vector<float> degrees{0, 90, 350};
  std::vector<float> sine(3), cosine(3);
  in::derive(in::Derivation::Sine, degrees, sine);
  in::derive(in::Derivation::Cosine, degrees, cosine);
  EXPECT_FLOAT_EQ(sine[1], 1.0f);
  EXPECT_FLOAT_EQ(sine[2], -0.17364818f);
  EXPECT_FLOAT_EQ(cosine[2], 0.98480775f);
}

in::Sequences hours(int64_t first, int64_t count, int64_t step = 1) {
  in::Sequences sequences;
  sequences.members.emplace_back();
  for (int64_t i = 0; i < count; ++i) sequences.members[0].times.push_back((first + i * step) * kHour);
  return sequences;
}

std::vector<std::string> paths(const in::OutputPlan& plan) {
  std::vector<std::string> out;
  for (const auto& file : plan.files)
    out.push_back(std::string(name_of(file.part)) + "/" + file.name + ":" + std::to_string(file.end - file.begin));
  return out;
}

TEST(IngestSequences, AStepThatNoTimeFitsIsNamed) {
  in::Inventory inventory = small_inventory();
  inventory.fields[2].time = kHour;
  inventory.fields.push_back(inventory.fields[2]);
  inventory.fields.back().time = 2 * kHour;
  in::Options options;
  options.variables = {{"wd10", ""}};
  options.step = 6 * kHour;
  const in::ChannelPlan plan = in::plan_channels(inventory, options);
  EXPECT_THAT(message_of([&] { in::sort_sequences(inventory, plan, options); }),
              HasSubstr("no time is a multiple of the step: --step=6 h, first time=1970-01-01T01:00:00, step of the files=1 h. "
                        "Leave --step out"));
}

TEST(IngestSplit, ByTime) {
  const int64_t first = welkin::data::parse_date("2000-12-31", Calendar::ProlepticGregorian) / kHour;
  const auto sequences = hours(first, 72);
  const auto plan = [&](in::Options options) { return paths(in::plan_output(sequences, Calendar::ProlepticGregorian, options)); };
  EXPECT_THAT(plan({}), ElementsAre("train/2000.h5:24", "train/2001.h5:48"));
  in::Options options;
  options.files = in::FilePolicy::Segment;
  EXPECT_THAT(plan(options), ElementsAre("train/2000.h5:72"));
  options.split.valid_last = 24 * kHour;
  EXPECT_THAT(plan(options), ElementsAre("train/2000.h5:48", "valid/2001.h5:24"));
  options.split.test_last = 12 * kHour;
  EXPECT_THAT(plan(options), ElementsAre("train/2000.h5:36", "valid/2001.h5:24", "test/2001.h5:12"));
  options.split = {};
  options.split.valid_from = "2001-01-01T12";
  EXPECT_THAT(plan(options), ElementsAre("train/2000.h5:36", "valid/2001.h5:36"));
  options.split = {};
  options.split.valid_fraction = 0.25;
  EXPECT_THAT(plan(options), ElementsAre("train/2000.h5:54", "valid/2001.h5:18"));
}

TEST(IngestSplit, BadBoundariesAreErrors) {
  const auto sequences = hours(0, 10);
  const auto message = [&](const in::Split& split) {
    in::Options options;
    options.split = split;
    return message_of([&] { in::plan_output(sequences, Calendar::ProlepticGregorian, options); });
  };
  EXPECT_THAT(message({.valid_from = "1999-01-01", .test_from = ""}),
              HasSubstr("boundary=1999-01-01T00:00:00 lies outside the data"));
  EXPECT_THAT(message({.valid_from = "1970-01-01T05", .test_from = "1970-01-01T04"}), HasSubstr("is not before test_from"));
  EXPECT_THAT(message({.valid_from = "1970-01-01T05", .test_from = "", .valid_last = 60}), HasSubstr("are given for one part"));
  EXPECT_THAT(message({.valid_from = "1970-01-01T09", .test_from = ""}),
              HasSubstr("no gapless piece is long enough: part=valid"));
  EXPECT_THAT(message({.valid_from = "", .test_from = "", .valid_last = 11 * kHour}), HasSubstr("lies outside the data"));
  EXPECT_THAT(message({.valid_from = "", .test_from = "", .valid_fraction = 1.5}), HasSubstr("fraction=1.5"));
}

TEST(IngestSplit, GapsEndFiles) {
  auto sequences = hours(0, 10);
  auto& times = sequences.members[0].times;
  times.erase(times.begin() + 4, times.begin() + 6);
  in::Options options;
  const auto plan = in::plan_output(sequences, Calendar::ProlepticGregorian, options);
  EXPECT_THAT(paths(plan), ElementsAre("train/segment0000_1970.h5:4", "train/segment0001_1970.h5:4"));
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_THAT(plan.notes[0], HasSubstr("1970-01-01T03:00:00 to 1970-01-01T06:00:00 (2 missing)"));
  options.gaps = in::GapPolicy::Error;
  EXPECT_THAT(message_of([&] { in::plan_output(sequences, Calendar::ProlepticGregorian, options); }),
              HasSubstr("the times have gaps: gaps=1, step=1 h"));
}

TEST(IngestSplit, MembersShareTheBoundary) {
  auto sequences = hours(0, 10);
  sequences.is_ensemble = true;
  sequences.members.push_back(sequences.members[0]);
  sequences.members[1].member = 7;
  in::Options options;
  options.split.valid_last = 4 * kHour;
  EXPECT_THAT(paths(in::plan_output(sequences, Calendar::ProlepticGregorian, options)),
              ElementsAre("train/member000_1970.h5:6", "valid/member000_1970.h5:4", "train/member007_1970.h5:6",
                          "valid/member007_1970.h5:4"));
}

TEST(IngestSplit, MonthsGoIntoOneFile) {
  in::Sequences sequences;
  sequences.members.emplace_back();
  for (int year = 101; year < 103; ++year) {
    for (int month = 1; month <= 12; ++month)
      sequences.members[0].times.push_back(welkin::data::to_seconds(Calendar::NoLeap, {year, month, 15, 0}));
  }
  EXPECT_THAT(paths(in::plan_output(sequences, Calendar::NoLeap, {})), ElementsAre("train/0101.h5:24"));
}

}  // namespace
