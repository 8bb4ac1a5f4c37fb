// SPDX-License-Identifier: Apache-2.0
#include "data/forecast/forecast_file.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/text.h"
#include "data/cf/file_times.h"
#include "data/forecast/field_names.h"
#include "data/forecast/forecast_layout.h"
#include "data/formats/array_file.h"
#include "data/formats/formats.h"
#include "data/sample/likeness.h"
#include "data/storage/array_views.h"

namespace welkin::data {
namespace {

ArrayFile open_forecast(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path))
    throw DataError("forecast", cat("there is no such file: path=", path.string()), "Make it with welkin forecast");
  return open_field_file(path);
}

bool is_whole_number(double value) {
  return value == std::trunc(value) && std::abs(value) <= std::numeric_limits<int32_t>::max();
}

}  // namespace

ForecastFile::ForecastFile(const std::filesystem::path& path) : file_(open_forecast(path)) {
  start_name_ = dimension({"init_time", "time", "forecast_reference_time"});
  lead_name_ = dimension({"lead_time", "prediction_timedelta", "step"});
  latitude_name_ = dimension({"latitude", "lat"});
  longitude_name_ = dimension({"longitude", "lon"});
  for (const std::string name : {"number", "realization", "member", "ensemble"}) {
    if (!file_.has(name) || file_.array(name)->facts().shape.empty()) continue;  // a scalar: which member this is
    member_name_ = name;
    members_ = file_.array(name)->facts().num_values();
  }
  if (!member_name_.empty()) member_numbers_ = numbers_of(member_name_);
  if (!std::ranges::all_of(member_numbers_, is_whole_number)) member_numbers_.clear();
  level_name_ = level_axis_of(file_);
  latitude_ = numbers_of(latitude_name_), longitude_ = numbers_of(longitude_name_);
  read_times();
  add_variables();
}

std::string ForecastFile::dimension(const std::vector<std::string>& names) const {
  const auto dimensions = [&](const std::string& name) { return file_.array(name)->facts().shape.size(); };
  for (const std::string& name : names) {
    if (file_.has(name) && dimensions(name) == 1) return name;
  }
  for (const std::string& name : names) {
    if (!file_.has(name)) continue;
    throw DataError("forecast",
                    cat("a coordinate of a forecast is no axis of it: path=", file_.path.string(), ", dataset=", name,
                        ", dimensions=", dimensions(name)),
                    cat("Keep the axis where one place of it is chosen, as xarray does with isel(", name, "=[0])"));
  }
  throw DataError("forecast", cat("this is no forecast: path=", file_.path.string(), ", missing=", names.front()),
                  "Give a file that welkin forecast made, or one of WeatherBench2's form");
}

std::vector<double> ForecastFile::numbers_of(const std::string& name) const { return file_.array(name)->read_doubles(); }

std::vector<std::string> ForecastFile::variables() const {
  std::vector<std::string> names;
  for (const auto& [name, variable] : variables_) names.push_back(name);
  return names;
}

void ForecastFile::read_times() {
  const int64_t num_starts = file_.array(start_name_)->facts().num_values();
  const int64_t num_leads = file_.array(lead_name_)->facts().num_values();
  if (num_starts == 0 || num_leads == 0) {
    throw DataError("forecast",
                    cat("a forecast without fields: path=", path().string(), ", starts=", num_starts, ", leads=", num_leads),
                    "Make it again");
  }
  const FileTimes times = data::read_times(file_, start_name_);
  if (times.seconds.empty()) refuse_times_without_units(file_.path.string(), start_name_, "scores of a forecast");
  starts_ = times.seconds;
  std::vector<int64_t> sorted = starts_;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
    throw DataError(
        "forecast",
        cat("a start occurs twice: path=", path().string(), ", ", start_name_, "=", format_date(times.calendar, *twice)),
        "Leave one of them out: it would count twice");
  }
  calendar_ = written_calendar(times.calendar);
  add_valid_times(static_cast<size_t>(num_leads));
  leads_ = read_leads(file_, lead_name_, starts_, valid_times_);
  if (!valid_times_.empty()) return;
  constexpr double kHour = 3600;
  for (const int64_t start : starts_) {
    std::vector<int64_t>& valid = valid_times_.emplace_back();
    for (const double lead : leads_.numbers) valid.push_back(start + std::llround(lead * kHour));
  }
}

// Takes the valid times from a file that says them: steps of months have no lead in hours.
void ForecastFile::add_valid_times(size_t num_leads) {
  if (!file_.has("valid_time")) return;
  const FileTimes valid = data::read_times(file_, "valid_time");
  if (written_calendar(valid.calendar) != calendar_ && !valid.seconds.empty()) {
    throw DataError("forecast",
                    cat("starts and valid times of a forecast have two calendars: path=", path().string(), ", ", start_name_, "=",
                        name_of(calendar_), ", valid_time=", name_of(valid.calendar)),
                    "Give both arrays the attribute calendar of the data");
  }
  const auto& axes = file_.array("valid_time")->facts().axes;
  if (valid.seconds.size() != starts_.size() * num_leads || axes.size() != 2) return;
  const bool by_start = axes.front() == start_name_;
  for (size_t start = 0; start < starts_.size(); ++start) {
    std::vector<int64_t>& times = valid_times_.emplace_back();
    for (size_t lead = 0; lead < num_leads; ++lead)
      times.push_back(valid.seconds[by_start ? start * num_leads + lead : lead * starts_.size() + start]);
  }
}

void ForecastFile::add_variables() {
  std::vector<std::vector<std::string_view>> axes = {{start_name_}};
  if (!member_name_.empty()) axes.push_back({member_name_});
  axes.insert(axes.end(), {{lead_name_}, {latitude_name_}, {longitude_name_}});
  Extents shape = {static_cast<int64_t>(starts_.size())};
  if (!member_name_.empty()) shape.push_back(members_);
  shape.insert(shape.end(), {num_leads(), height(), width()});
  auto axes_of_levels = axes;
  if (!level_name_.empty()) axes_of_levels.insert(axes_of_levels.end() - 2, {level_name_});
  for (const auto& [name, array] : file_.arrays) {
    if (array->facts().shape.size() == shape.size()) {
      const StoredArrayPtr ordered = with_axes(array, axes);
      if (ordered->facts().shape == shape) add_variable(variables_, file_, name, ordered, {});
    } else if (!level_name_.empty() && array->facts().shape.size() == axes_of_levels.size()) {
      add_levels(name, with_axes(array, axes_of_levels));
    }
  }
  if (!variables_.empty()) return;
  throw DataError("forecast", cat("no array has the dimensions of a forecast: path=", file_.path.string()),
                  "Give a file that welkin forecast made, or one of WeatherBench2's form");
}

void ForecastFile::add_levels(const std::string& name, const StoredArrayPtr& array) {
  const std::vector<double> levels = numbers_of(level_name_);
  Extents shape = array->facts().shape;
  if (shape.at(shape.size() - 3) != static_cast<int64_t>(levels.size())) return;
  shape.erase(shape.end() - 3);
  Extents wanted = {static_cast<int64_t>(starts_.size())};
  if (!member_name_.empty()) wanted.push_back(members_);
  wanted.insert(wanted.end(), {num_leads(), height(), width()});
  if (shape == wanted) add_variable(variables_, file_, name, array, levels);
}

void ForecastFile::fit(const SampleSpec& truth, const std::vector<std::string>& names) {
  GridAxes axes = assumed_axes({latitude_, longitude_});
  if (!truth.latitude.empty()) axes.latitude = truth.latitude;
  if (!truth.longitude.empty()) axes.longitude = truth.longitude;
  const ComparedFile source{.component = "evaluate",
                            .subject = "the forecast",
                            .path = path().string(),
                            .remedy_of_grid = "Give the data of the run that made the forecast",
                            .remedy_of_unit = "Convert one of the two"};
  turn_ = turn_onto(truth, axes, {latitude_, longitude_}, height(), width(), source);
  latitude_ = std::move(axes.latitude), longitude_ = std::move(axes.longitude);
  without_units_ = name_as_channels(variables_, truth, names, source);
}

void ForecastFile::read(const std::string& variable, int64_t start, int64_t lead, std::span<float> out) const {
  const FieldVariable& from = variables_.at(variable);
  ArrayRegion region{.begin = {start}, .end = {start + 1}};
  if (!member_name_.empty()) region.begin.push_back(0), region.end.push_back(members_);
  region.begin.push_back(lead), region.end.push_back(lead + 1);
  if (from.level) region.begin.push_back(*from.level), region.end.push_back(*from.level + 1);
  region.begin.insert(region.begin.end(), {0, 0});
  region.end.insert(region.end.end(), {height(), width()});
  from.array->read(region, out);
  turn_.apply(out, height(), width());
}

}  // namespace welkin::data
