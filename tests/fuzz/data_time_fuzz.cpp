// SPDX-License-Identifier: Apache-2.0
// libFuzzer: units and calendars as files say them, and dates as files and flags say them: first line the units or the date, then
// the calendar. No text may crash or overflow, and what is accepted is written back as the same second.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "data/cf/time_span.h"
#include "data/sample/calendar.h"

namespace {

namespace data = welkin::data;

void expect_same_date(int64_t seconds, data::Calendar calendar) {
  if (data::parse_date(data::format_date(calendar, seconds), calendar) != seconds) std::abort();
  const data::DayOfYear day = data::day_of_year(calendar, seconds);
  if (!(day.day >= 0 && day.day < day.days_in_year)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const size_t end = text.find('\n');
  const std::string_view first = text.substr(0, end), second = end == std::string_view::npos ? "" : text.substr(end + 1);
  try {
    const data::TimeUnits units = data::parse_time_units(first, second);
    for (const double value : {0.0, 1.0, -1e6, 1e12}) expect_same_date(units.to_seconds(value), units.calendar);
  } catch (const welkin::DataError&) {  // the legal ways to refuse
  } catch (const welkin::ConfigError&) {
  }
  const auto calendar = static_cast<data::Calendar>(size % 6);
  try {
    expect_same_date(data::parse_date(first, calendar), calendar);
    const data::TimeSpan span = data::time_span({std::string(first), std::string(second)}, calendar, "fuzz");
    if (span.begin >= span.end) std::abort();
  } catch (const welkin::ConfigError&) {
  }
  try {
    if (data::parse_duration(first) < 1) std::abort();
  } catch (const welkin::ConfigError&) {
  }
  return 0;
}
