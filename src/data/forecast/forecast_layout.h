// SPDX-License-Identifier: Apache-2.0
// What a forecast file holds, by the names of WeatherBench-X and the CF conventions 1.10: one array per channel, (number,
// lead_time, init_time, latitude, longitude), `number` only where there are several members. `init_time` is the start,
// `valid_time` (lead_time, init_time) the time that a field is of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/forecast/forecast_leads.h"
#include "data/formats/array_writer.h"
#include "data/sample/calendar.h"

namespace welkin::data {

struct ForecastLayout {
  std::vector<std::string> channels, units;  // of the run; a unit may be empty
  std::vector<double> latitude, longitude;   // degrees; empty: the tutorials' rows from pole to pole, columns from 0 eastwards
  int64_t height = 0, width = 0;
  Calendar calendar = Calendar::ProlepticGregorian;
  std::vector<int64_t> starts;  // seconds, ascending
  ForecastLeads leads;
  std::vector<std::vector<int64_t>> valid_times;  // (start, lead) seconds
  int64_t members = 1;
  std::vector<double> member_numbers{};  // whole ones; empty: from 0
  Attributes attributes;                 // of the file: title, source, ...

  int64_t num_leads() const { return static_cast<int64_t>(leads.numbers.size()); }
};

// Names of the arrays, one per channel: letters, digits and underscores, no two alike, none that of a coordinate.
std::vector<std::string> variable_names(const std::vector<std::string>& channels);

// True if a file's unit is this unit of a channel, in ERA5's spelling or that of the CF conventions. No unit matches any.
bool is_unit_of(const std::string& written, const std::string& unit);

// Arrays in the order of the channels, then `valid_time`. Chunks are single fields.
OutputFile forecast_output(const ForecastLayout& layout);

// The values of `valid_time`, (lead, start), in its unit.
std::vector<double> valid_time_values(const ForecastLayout& layout);

// The region of one field in its array.
ArrayRegion field_region(const ForecastLayout& layout, int64_t start, int64_t member, int64_t lead);

}  // namespace welkin::data
