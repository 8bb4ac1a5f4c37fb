// SPDX-License-Identifier: Apache-2.0
#include "data/cf/file_times.h"

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "core/printable.h"
#include "core/text.h"

namespace welkin::data {
namespace {

std::string time_text(const ArrayFile& file, std::string_view name, std::string_view attribute) {
  const auto texts = file.texts(name, attribute);
  return texts.empty() ? "" : printable(texts.front());
}

TimeUnits units_of_keys(const TimeKeys& keys) {
  try {
    return parse_time_units(keys.units, keys.calendar);
  } catch (const DataError&) {
    throw ConfigError("data", cat("cannot read the key: time_units=", keys.units, ", time_calendar=", keys.calendar),
                      "Write them like: time_units: hours since 1900-01-01 00:00, time_calendar: noleap");
  }
}

[[noreturn]] void refuse_times(const ArrayFile& file, std::string_view name, const TimeUnits* units, std::string_view found,
                               std::string_view remedy) {
  throw DataError("data",
                  cat("the times of a file cannot be read: path=", file.path.string(), ", dataset=", name,
                      units == nullptr ? ", units=" : ", value=", found, ", calendar=",
                      units == nullptr ? time_text(file, name, "calendar") : std::string(name_of(units->calendar))),
                  remedy);
}

// Units by the array, else by the keys, else those of our own files; nullopt where none of them gives units.
std::optional<TimeUnits> units_of(const ArrayFile& file, const std::string& name, const TimeKeys& keys) {
  const std::string units = time_text(file, name, "units"), said = time_text(file, name, "calendar");
  const std::string calendar = said.empty() ? keys.calendar : said;
  if (!units.empty()) {
    try {
      return parse_time_units(units, calendar);
    } catch (const DataError&) {
      if (!keys.units.empty()) return units_of_keys(keys);
      refuse_times(file, name, nullptr, units,
                   "Give the array CF units such as hours since 1900-01-01 00:00 and a CF calendar, or set time_units (and "
                   "time_calendar); months and years have a length in the calendar 360_day only");
    }
  }
  if (!keys.units.empty()) return units_of_keys({keys.units, calendar});
  if (has_our_times(file)) return parse_time_units(kOurTimeUnits, calendar.empty() ? "proleptic_gregorian" : calendar);
  return std::nullopt;
}

}  // namespace

bool has_our_times(const ArrayFile& file) {
  const bool described = file.format != "HDF5" && !file.format.starts_with("Zarr");  // by a sidecar
  return described || !file.texts("", "provenance").empty();
}

FileTimes read_times(const ArrayFile& file, const std::string& name, const TimeKeys& keys) {
  FileTimes times;
  times.stored = file.array(name)->read_doubles();
  const auto units = units_of(file, name, keys);
  if (!units) return times;
  times.calendar = units->calendar;
  for (const double value : times.stored) {
    try {
      times.seconds.push_back(units->to_seconds(value));
    } catch (const DataError&) {
      refuse_times(file, name, &*units, cat(value), "Make the file again, without missing times");
    }
  }
  return times;
}

void check_time_order(const FileTimes& times, std::string_view path, std::string_view name) {
  const bool known = !times.seconds.empty();
  std::vector<double> values(times.seconds.begin(), times.seconds.end());
  if (!known) values = times.stored;
  const std::string_view unit = known ? ", seconds=" : ", difference=";
  double shortest = 0;
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    const double step = values[i + 1] - values[i];
    if (!(step > 0)) {
      throw DataError("data",
                      cat("the times of a file do not increase: path=", path, ", dataset=", name, ", step=", i, unit, step),
                      "Sort the file by time, without times that occur twice");
    }
    shortest = i == 0 ? step : std::min(shortest, step);
  }
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    const double step = values[i + 1] - values[i];
    if (step * 2 <= shortest * 3) continue;
    throw DataError(
        "data", cat("the times of a file are not evenly spaced: path=", path, ", step=", i, unit, step, ", shortest=", shortest),
        "Make it with welkin data ingest, which splits at gaps");
  }
}

void refuse_times_without_units(std::string_view path, std::string_view name, std::string_view purpose) {
  throw DataError("data", cat("the times of a file have no units: path=", path, ", dataset=", name, ", needed_by=", purpose),
                  "Give the array the attribute units, or set time_units (and time_calendar), as in --set "
                  "'time_units=hours since 1900-01-01 00:00'");
}

}  // namespace welkin::data
