// SPDX-License-Identifier: Apache-2.0
// Mean fields by day of the year and hour of the day, of WeatherBench2's form: arrays (hour, dayofyear, latitude, longitude), one
// per channel, days 1 to 366. A day is the mean over the days around it in all years, with weights that fall linearly to the edge
// of the window, circular over the end of the year.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/forecast/field_states.h"
#include "data/forecast/field_variables.h"
#include "data/forecast/grid_turn.h"

namespace welkin::data {

struct ClimatologyOptions {
  std::filesystem::path output;  // .zarr or .nc
  int64_t window = 61;           // days, odd
};

// Uses the target's channels of these states, in the files' values. Memory has the sums of one channel and one hour of the day,
// however many years there are. ConfigError for the output, DataError for a grid that is too large.
void make_climatology(const FieldStates& states, const ClimatologyOptions& options);

class Climatology {
 public:
  // DataError when the file is no climatology.
  explicit Climatology(const std::filesystem::path& path);

  int64_t height() const { return height_; }
  int64_t width() const { return width_; }
  bool has(const std::string& variable) const { return variables_.contains(variable); }
  // Works as ForecastFile::fit(), for calendars with as many days. `axes` are those of the grid on which the fields are wanted.
  void fit(const SampleSpec& truth, const std::vector<std::string>& names, const GridAxes& axes);
  // (latitude, longitude) of a time. DataError for an hour or a day that it does not hold.
  void read(const std::string& variable, Calendar calendar, int64_t seconds, std::span<float> out) const;

 private:
  void add_variables(const ArrayFile& file);
  // True if the array is one by hour, day and place, and by `levels` where there are some.
  bool has_fields(const StoredArray& array, std::optional<int64_t> levels);

  std::filesystem::path path_;
  std::vector<double> hours_, days_;
  std::string calendar_;  // of the data that it was made of; empty where the file does not say
  int64_t height_ = 0, width_ = 0;
  GridAxes axes_;
  GridTurn turn_;
  FieldVariables variables_;  // (hour, dayofyear, [level,] latitude, longitude)
};

}  // namespace welkin::data
