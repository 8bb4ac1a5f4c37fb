// SPDX-License-Identifier: Apache-2.0
// The times of a training file, as its time array says them: units and calendar of the CF conventions. The one place where
// stored times become seconds. Torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/sample/calendar.h"
#include "data/storage/stored_array.h"

namespace welkin::data {

// Keys time_units and time_calendar: for files whose time array does not say it, or says what cannot be read.
struct TimeKeys {
  std::string units{}, calendar{};
};

struct FileTimes {
  std::vector<double> stored;    // as the array holds them
  std::vector<int64_t> seconds;  // since 1970-01-01 of `calendar`; empty where nothing says the units
  Calendar calendar = Calendar::ProlepticGregorian;
};

// True if times without units are seconds since 1970-01-01: in files that carry our provenance, and where a sidecar says them.
inline constexpr std::string_view kOurTimeUnits = "seconds since 1970-01-01";
bool has_our_times(const ArrayFile& file);

// Reads the times of the array `name`.
// DataError for units, a calendar or a value that cannot be read; ConfigError for such keys.
FileTimes read_times(const ArrayFile& file, const std::string& name, const TimeKeys& keys = {});

// DataError where times do not increase, or where one step is 1.5 times as long as another one: a month may be 28 to 31 days
// long, a gap is at least twice the step.
void check_time_order(const FileTimes& times, std::string_view path, std::string_view name);

// DataError that says how to give a file its units. `purpose`: "forcing", ...
[[noreturn]] void refuse_times_without_units(std::string_view path, std::string_view name, std::string_view purpose);

}  // namespace welkin::data
