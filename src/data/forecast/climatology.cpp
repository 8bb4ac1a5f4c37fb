// SPDX-License-Identifier: Apache-2.0
#include "data/forecast/climatology.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "data/forecast/field_names.h"
#include "data/forecast/forecast_layout.h"
#include "data/formats/array_file.h"
#include "data/formats/array_writer.h"
#include "data/formats/formats.h"
#include "data/sample/likeness.h"
#include "data/storage/array_views.h"

namespace welkin::data {
namespace {

constexpr int64_t kDays = 366, kMostDayValues = int64_t{1} << 30;  // of sums: 16 GiB with their weights

// Days are counted in a leap year. Years of 360 days are stretched to it, except onto those of a file with as many days.
int64_t day_number(Calendar calendar, int64_t seconds, int64_t days_of_file = kDays) {
  const DayOfYear day = day_of_year(calendar, seconds);
  const auto whole = static_cast<int64_t>(std::floor(day.day));
  if (day.days_in_year >= 365 || day.days_in_year == days_of_file) return std::min(whole, kDays - 1);
  return std::min(kDays - 1, whole * kDays / day.days_in_year);
}

int64_t second_of_day(Calendar calendar, int64_t seconds) { return to_date(calendar, seconds).second_of_day; }

OutputFile climatology_output(const FieldStates& states, const std::vector<double>& hours, bool is_zarr) {
  const SampleSpec& spec = states.spec();
  const auto names = variable_names(spec.target.channels);
  const int64_t height = spec.target.shape[1], width = spec.target.shape[2];
  OutputFile output;
  for (size_t c = 0; c < names.size(); ++c) {
    OutputArray array{.name = names[c],
                      .shape = {static_cast<int64_t>(hours.size()), kDays, height, width},
                      .chunk = {1, 1, height, width},
                      .dtype = Dtype::F32,
                      .codecs = {},
                      .axes = {"hour", "dayofyear", "latitude", "longitude"},
                      .attributes = {{"long_name", text_attribute(spec.target.channels[c])}},
                      .nan_is_missing = true};
    if (!spec.target.units[c].empty()) array.attributes["units"] = text_attribute(spec.target.units[c]);
    if (is_zarr) array.codecs = {{.kind = CodecKind::Blosc, .level = 5, .width = 4, .compressor = "zstd", .shuffle = 1}};
    output.arrays.push_back(std::move(array));
  }
  std::vector<double> days(static_cast<size_t>(kDays));
  for (size_t day = 0; day < days.size(); ++day) days[day] = static_cast<double>(day + 1);
  add_coordinate(output, "hour", hours, {{"long_name", text_attribute("hour of the day")}});
  add_coordinate(
      output, "dayofyear", std::move(days),
      {{"long_name", text_attribute("day of the year")}, {"calendar", text_attribute(std::string(name_of(states.calendar())))}});
  if (!spec.latitude.empty()) add_coordinate(output, "latitude", spec.latitude, latitude_attributes());
  if (!spec.longitude.empty()) add_coordinate(output, "longitude", spec.longitude, longitude_attributes());
  return output;
}

// Sums by day of one hour, a channel at a time.
class DaySums {
 public:
  DaySums(int64_t plane, int64_t window)
      : plane_(static_cast<size_t>(plane)), half_(window / 2), sum_(plane_ * kDays, 0.0), count_(plane_ * kDays, 0.0) {}

  void add(int64_t day, std::span<const float> field) {
    for (size_t i = 0; i < plane_; ++i) {
      if (std::isnan(field[i])) continue;
      sum_[static_cast<size_t>(day) * plane_ + i] += static_cast<double>(field[i]);
      count_[static_cast<size_t>(day) * plane_ + i] += 1;
    }
  }

  // The weighted mean over the days around; NaN where there is nothing.
  void mean(int64_t day, std::span<float> out) const {
    std::vector<double> total(plane_, 0.0), weight(plane_, 0.0);
    for (int64_t shift = -half_; shift <= half_; ++shift) {
      const auto at = static_cast<size_t>((day + shift + kDays) % kDays) * plane_;
      const double share = 1 - std::abs(static_cast<double>(shift)) / static_cast<double>(half_ + 1);
      for (size_t i = 0; i < plane_; ++i) total[i] += share * sum_[at + i], weight[i] += share * count_[at + i];
    }
    for (size_t i = 0; i < plane_; ++i) out[i] = static_cast<float>(total[i] / weight[i]);
  }

 private:
  size_t plane_;
  int64_t half_;
  std::vector<double> sum_, count_;
};

void write_climatology(const FieldStates& states, const ClimatologyOptions& options, const std::filesystem::path& path,
                       bool is_zarr) {
  std::set<int64_t> seconds;
  for (const int64_t time : states.times()) seconds.insert(second_of_day(states.calendar(), time));
  std::vector<double> hours;
  for (const int64_t second : seconds) hours.push_back(static_cast<double>(second) / 3600);
  const OutputFile output = climatology_output(states, hours, is_zarr);
  const auto writer = is_zarr ? make_zarr_writer(path, 2, output) : make_netcdf_writer(path, output);
  const SampleSpec& spec = states.spec();
  const int64_t height = spec.target.shape[1], width = spec.target.shape[2], plane = height * width;
  std::vector<float> field(static_cast<size_t>(plane));
  for (int64_t channel = 0; channel < spec.target.shape[0]; ++channel) {
    int64_t hour = 0;
    for (const int64_t second : seconds) {
      DaySums sums(plane, options.window);
      for (int64_t index = 0; index < states.size(); ++index) {
        const int64_t time = states.times()[static_cast<size_t>(index)];
        if (second_of_day(states.calendar(), time) != second) continue;
        states.read_truth(index, channel, field);
        sums.add(day_number(states.calendar(), time), field);
      }
      for (int64_t day = 0; day < kDays; ++day) {
        sums.mean(day, field);
        writer->write(static_cast<size_t>(channel), {{hour, day, 0, 0}, {hour + 1, day + 1, height, width}},
                      std::as_bytes(std::span<const float>(field)));
      }
      ++hour;
    }
  }
  writer->finish();
}

}  // namespace

void make_climatology(const FieldStates& states, const ClimatologyOptions& options) {
  states.need_truth("a climatology");
  const bool is_zarr = options.output.extension() == ".zarr";
  if (!is_zarr && options.output.extension() != ".nc")
    throw ConfigError("climatology", cat("not a known kind of file: output=", options.output.string()), "Name it .zarr or .nc");
  if (std::filesystem::exists(options.output))
    throw ConfigError("climatology", cat("the output is there already: output=", options.output.string()),
                      "Remove it, or name another");
  const int64_t plane = states.spec().target.shape[1] * states.spec().target.shape[2];
  if (plane * kDays > kMostDayValues)
    throw DataError("climatology", cat("a grid whose days do not fit in memory: points=", plane), "Make it of a coarser grid");
  if (!is_zarr) {
    write_path_atomically(options.output, [&](const auto& path) { write_climatology(states, options, path, is_zarr); });
    return;
  }
  const std::filesystem::path unfinished = std::filesystem::path(options.output).concat(".unfinished");
  std::filesystem::remove_all(unfinished);
  write_climatology(states, options, unfinished, is_zarr);
  publish_folder(unfinished, options.output);
}

Climatology::Climatology(const std::filesystem::path& path) : path_(path) {
  const ArrayFile file = open_field_file(path);
  if (!file.has("hour") || !file.has("dayofyear"))
    throw DataError("climatology", cat("this is no climatology by day and hour: path=", path.string()),
                    "Make one with welkin data climatology");
  hours_ = file.array("hour")->read_doubles(), days_ = file.array("dayofyear")->read_doubles();
  if (const auto calendar = file.texts("dayofyear", "calendar"); !calendar.empty()) calendar_ = calendar.front();
  add_variables(file);
  for (const char* name : {"lat", "latitude"}) {
    if (file.has(name)) axes_.latitude = file.array(name)->read_doubles();
  }
  for (const char* name : {"lon", "longitude"}) {
    if (file.has(name)) axes_.longitude = file.array(name)->read_doubles();
  }
  if (variables_.empty())
    throw DataError("climatology", cat("no array is one by hour and day: path=", path.string()),
                    "Make one with welkin data climatology");
}

void Climatology::add_variables(const ArrayFile& file) {
  std::vector<double> levels;
  const std::string level_name = level_axis_of(file);
  if (!level_name.empty()) levels = file.array(level_name)->read_doubles();
  const std::vector<std::vector<std::string_view>> places = {{"hour"}, {"dayofyear"}, {"latitude", "lat"}, {"longitude", "lon"}};
  auto with_levels = places;
  with_levels.insert(with_levels.begin() + 2, {level_name});
  for (const auto& [name, array] : file.arrays) {
    const size_t dims = array->facts().shape.size();
    if (dims != places.size() && (levels.empty() || dims != with_levels.size())) continue;
    const bool has_levels = dims == with_levels.size();
    const StoredArrayPtr ordered = with_axes(array, has_levels ? with_levels : places);
    if (!has_fields(*ordered, has_levels ? std::optional(static_cast<int64_t>(levels.size())) : std::nullopt)) continue;
    add_variable(variables_, file, name, ordered, has_levels ? levels : std::vector<double>());
  }
}

bool Climatology::has_fields(const StoredArray& array, std::optional<int64_t> levels) {
  Extents shape = array.facts().shape;
  if (levels && shape[2] != *levels) return false;
  if (levels) shape.erase(shape.begin() + 2);
  if (shape[0] != static_cast<int64_t>(hours_.size()) || shape[1] != static_cast<int64_t>(days_.size())) return false;
  if (variables_.empty()) height_ = shape[2], width_ = shape[3];
  return shape[2] == height_ && shape[3] == width_;
}

void Climatology::fit(const SampleSpec& truth, const std::vector<std::string>& names, const GridAxes& axes) {
  const char* const remedy = "Make it of the run's own data";
  // A day of the year of 360 days is another one than that of the others.
  const std::string_view short_year = name_of(Calendar::Day360);
  if (!calendar_.empty() && !truth.calendar.empty() && (calendar_ == short_year) != (truth.calendar == short_year)) {
    throw DataError(
        "climatology",
        cat("it has another calendar than the data: path=", path_.string(), ", calendar=", calendar_, ", data=", truth.calendar),
        remedy);
  }
  const ComparedFile source{
      .component = "climatology", .subject = "it", .path = path_.string(), .remedy_of_grid = remedy, .remedy_of_unit = remedy};
  turn_ = turn_onto(truth, axes, axes_, height(), width(), source);
  name_as_channels(variables_, truth, names, source);
}

void Climatology::read(const std::string& variable, Calendar calendar, int64_t seconds, std::span<float> out) const {
  const double hour = static_cast<double>(second_of_day(calendar, seconds)) / 3600;
  const auto found = std::ranges::find(hours_, hour);
  if (found == hours_.end()) {
    throw DataError("climatology", cat("it holds nothing of this hour of the day: path=", path_.string(), ", hour=", hour),
                    "Make it of data that hold this hour");
  }
  const int64_t number = day_number(calendar, seconds, static_cast<int64_t>(days_.size())) + 1;
  auto same_day = std::ranges::find(days_, static_cast<double>(number));
  // A climatology of 365 days has none for the last one of a leap year.
  if (same_day == days_.end() && number == kDays) same_day = std::ranges::find(days_, static_cast<double>(kDays - 1));
  if (same_day == days_.end()) {
    throw DataError("climatology", cat("it holds nothing of this day of the year: path=", path_.string(), ", day=", number),
                    "Make it of data that hold this day");
  }
  const int64_t at = found - hours_.begin(), day = same_day - days_.begin();
  const FieldVariable& from = variables_.at(variable);
  ArrayRegion region{.begin = {at, day}, .end = {at + 1, day + 1}};
  if (from.level) region.begin.push_back(*from.level), region.end.push_back(*from.level + 1);
  region.begin.insert(region.begin.end(), {0, 0});
  region.end.insert(region.end.end(), {height_, width_});
  from.array->read(region, out);
  turn_.apply(out, height_, width_);
}

}  // namespace welkin::data
