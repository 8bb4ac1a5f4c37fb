// SPDX-License-Identifier: Apache-2.0
#include "data/cf/file_variable.h"

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "core/printable.h"
#include "core/text.h"
#include "data/cf/coordinates.h"
#include "data/storage/array_views.h"
#include "data/storage/axis_names.h"

namespace welkin::data {
namespace {

constexpr size_t kNoAxis = kMostArrayDims;

// The index of each axis in the array.
struct VariableAxes {
  size_t time = kNoAxis, level = kNoAxis, latitude = kNoAxis, longitude = kNoAxis;
  std::string time_name;  // of the array with the times
};

[[noreturn]] void refuse_variable(const ArrayFacts& facts, std::string_view reason, std::string_view remedy) {
  throw DataError(
      "data", cat("a variable that is no field: path=", facts.source, ", axes=(", join(facts.axes, ", "), "), reason=", reason),
      remedy);
}

// The array of times along an axis: that of its name, or another one along it, as valid_time along the leads of one forecast.
// Valid times come before those at which forecasts began.
std::string times_along(const ArrayFile& file, const std::string& axis) {
  const auto means = [&](const std::string& name, std::string_view meaning) {
    const auto texts = file.texts(name, "standard_name");
    return texts.size() == 1 && texts.front() == meaning;
  };
  const bool is_time = is_coordinate(file, CoordinateKind::Time, axis);
  if (is_time && !means(axis, "forecast_reference_time")) return axis;
  for (const auto& [name, array] : file.arrays) {
    const bool is_along = array->facts().axes == std::vector<std::string>{axis};
    if (is_along && means(name, "time") && is_coordinate(file, CoordinateKind::Time, name)) return name;
  }
  return is_time ? axis : "";
}

// A lead other than zero, as an axis of length 1 or a scalar beside the time at which the forecast began.
void check_lead(const ArrayFile& file, const ArrayFacts& facts, const std::string& lead, const VariableAxes& axes) {
  if (axes.time == kNoAxis || !file.has(lead) || file.array(lead)->facts().num_values() != 1) return;
  if (file.array(lead)->read_doubles() == std::vector<double>{0}) return;
  const auto standard = file.texts(axes.time_name, "standard_name");
  const std::string meaning = standard.empty() ? "" : standard.front();
  const bool is_axis_of = std::ranges::find(facts.axes, lead) != facts.axes.end();
  if (meaning == "time" || (meaning != "forecast_reference_time" && !is_axis_of)) return;
  refuse_variable(facts,
                  cat("its time ", printable(axes.time_name), " is that at which the forecast began: its lead ", printable(lead),
                      " is not zero"),
                  cat("Make valid_time its axis, in xarray with d.isel(", printable(lead), "=0, drop=True).swap_dims(",
                      printable(axes.time_name), "='valid_time')"));
}

// The axis of the levels. One of length 1 that is none says nothing.
void add_level(const ArrayFacts& facts, const std::vector<size_t>& others, VariableAxes& axes) {
  const auto is_level = [&](size_t d) {
    return is_axis(AxisKind::Pressure, facts.axes[d]) || is_axis(AxisKind::Level, facts.axes[d]);
  };
  for (const size_t d : others) {
    const std::string& name = facts.axes[d];
    if (facts.shape[d] == 1) continue;
    const bool is_none = is_axis(AxisKind::Lead, name) || is_same_name(name, "expver");
    if (is_none || axes.level != kNoAxis)
      refuse_variable(
          facts,
          cat("its axis ", printable(name), " is none of time, level, latitude and longitude: ", axis_remedy(printable(name))),
          "Then read the new file");
    axes.level = d;
  }
  const auto single = std::ranges::find_if(others, is_level);
  if (axes.level == kNoAxis && single != others.end()) axes.level = *single;
}

VariableAxes axes_of_variable(const ArrayFile& file, const ArrayFacts& facts) {
  VariableAxes axes;
  std::vector<size_t> others;
  if (facts.axes.size() != facts.shape.size()) {
    refuse_variable(facts, "the file does not name its axes", "Write it with named dimensions, as xarray and netCDF do");
  }
  for (size_t d = 0; d < facts.axes.size(); ++d) {
    if (is_axis(AxisKind::Member, facts.axes[d]) && facts.shape[d] > 1) {
      refuse_variable(facts, "it has ensemble members", "Choose one into a file of its own first");
    }
    const std::string& name = facts.axes[d];
    const std::string times = times_along(file, name);
    const bool is_row = is_coordinate(file, CoordinateKind::Latitude, name);
    if (is_row || is_coordinate(file, CoordinateKind::Longitude, name)) {
      size_t& place = is_row ? axes.latitude : axes.longitude;
      if (place != kNoAxis) refuse_variable(facts, "two axes of latitude or longitude", "Choose along one of them first");
      place = d;
    } else if (!times.empty()) {
      if (axes.time != kNoAxis) refuse_variable(facts, "two axes of time", "Choose along one of them first");
      axes.time = d, axes.time_name = times;
    } else {
      others.push_back(d);
    }
  }
  if (axes.latitude == kNoAxis || axes.longitude == kNoAxis) {
    refuse_variable(facts, "it has no latitude or longitude", "Choose variables on a grid of latitudes and longitudes");
  }
  add_level(facts, others, axes);
  for (const std::string_view lead : array_names(AxisKind::Lead)) check_lead(file, facts, std::string(lead), axes);
  return axes;
}

std::vector<double> axis_values(const ArrayFile& file, const ArrayFacts& facts, size_t axis) {
  const std::string& name = facts.axes[axis];
  if (file.has(name) && !is_dimension_placeholder(file, name)) {
    std::vector<double> values = file.array(name)->read_doubles();
    if (static_cast<int64_t>(values.size()) == facts.shape[axis]) return values;
  }
  if (facts.shape[axis] == 1) return {0};
  refuse_variable(facts, cat("no values of its axis ", printable(name)), "Give the file an array of that name along the axis");
}

enum class LevelUnit { Hectopascal, Pascal, Other };

// Stores of WeatherBench2's layout do not say what their `level` counts.
LevelUnit unit_of_levels(const ArrayFile& file, const std::string& name) {
  const auto texts = file.texts(name, "units");
  const std::string units = texts.empty() ? "" : texts.front();
  if (units == "Pa") return LevelUnit::Pascal;
  const bool is_hectopascal =
      units == "hPa" || units.starts_with("mb") || units.starts_with("millibar") || units.starts_with("hectopascal");
  const bool is_silent = units.empty() && is_axis(AxisKind::Pressure, name);
  return is_hectopascal || is_silent ? LevelUnit::Hectopascal : LevelUnit::Other;
}

void check_ascending(const ArrayFacts& facts, const std::vector<double>& values, std::string_view what) {
  if (std::ranges::is_sorted(values, std::ranges::less_equal())) return;
  refuse_variable(facts, cat(what, " that do not go one way"), "welkin data ingest brings grids into order");
}

void read_grid(const ArrayFile& file, const ArrayFacts& facts, const VariableAxes& axes, FileVariable& variable) {
  variable.latitude = axis_values(file, facts, axes.latitude);
  variable.longitude = axis_values(file, facts, axes.longitude);
  variable.south_first = variable.latitude.front() < variable.latitude.back();
  std::vector<double> upward = variable.latitude;
  if (variable.south_first) {
    std::ranges::reverse(variable.latitude);
  } else {
    std::ranges::reverse(upward);
  }
  check_ascending(facts, upward, "latitudes");
  check_ascending(facts, variable.longitude, "longitudes");
}

}  // namespace

std::shared_ptr<const FileTimes> VariableReader::times_of(const std::string& axis) {
  auto& times = times_[axis];
  if (!times) times = std::make_shared<const FileTimes>(read_times(file_, axis, keys_));
  if (times->seconds.empty()) refuse_times_without_units(file_.path.string(), axis, "an archive of variables");
  return times;
}

FileVariable VariableReader::read(const std::string& name) {
  const StoredArrayPtr stored = file_.array(name);
  const ArrayFacts& facts = stored->facts();
  const VariableAxes axes = axes_of_variable(file_, facts);
  FileVariable variable;
  variable.has_time = axes.time != kNoAxis, variable.has_level = axes.level != kNoAxis;
  std::vector<size_t> order;
  for (const size_t axis : {axes.time, axes.level, axes.latitude, axes.longitude}) {
    if (axis != kNoAxis) order.push_back(axis);
  }
  variable.array = permuted(stored, order);
  read_grid(file_, facts, axes, variable);
  if (variable.has_time) {
    variable.times = times_of(axes.time_name);
    if (static_cast<int64_t>(variable.times->seconds.size()) != facts.shape[axes.time]) {
      refuse_variable(facts, "its axis of time has another length than its times", "Make the file again");
    }
  }
  if (variable.has_level) {
    variable.levels = axis_values(file_, facts, axes.level);
    const LevelUnit unit = unit_of_levels(file_, facts.axes[axes.level]);
    variable.on_pressure = unit != LevelUnit::Other;
    if (unit == LevelUnit::Pascal) {
      for (double& level : variable.levels) level /= 100;
    }
  }
  const auto units = file_.texts(name, "units");
  variable.units = units.empty() ? "" : units.front();
  return variable;
}

}  // namespace welkin::data
