// SPDX-License-Identifier: Apache-2.0
// A forecast file read back: ours (forecast_layout.h), or another of WeatherBench's form, as Zarr or classic netCDF. Names of
// dimensions: start init_time, time or forecast_reference_time; lead lead_time, prediction_timedelta or step; member number,
// realization, member or ensemble; levels level, pressure_level or isobaricInhPa. Axes may stand in any order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/forecast/field_variables.h"
#include "data/forecast/forecast_leads.h"
#include "data/forecast/grid_turn.h"
#include "data/sample/calendar.h"
#include "data/sample/dataset.h"
#include "data/storage/stored_array.h"

namespace welkin::data {

class ForecastFile {
 public:
  // DataError for a file without starts or leads, or in another format.
  explicit ForecastFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path; }
  Calendar calendar() const { return calendar_; }
  const std::vector<int64_t>& starts() const { return starts_; }  // seconds
  const ForecastLeads& leads() const { return leads_; }
  int64_t num_leads() const { return static_cast<int64_t>(leads_.numbers.size()); }
  int64_t valid_time(int64_t start, int64_t lead) const {
    return valid_times_[static_cast<size_t>(start)][static_cast<size_t>(lead)];
  }
  int64_t members() const { return members_; }
  const std::vector<double>& member_numbers() const { return member_numbers_; }  // empty where they are no whole numbers
  const std::vector<double>& latitude() const { return latitude_; }
  const std::vector<double>& longitude() const { return longitude_; }
  int64_t height() const { return static_cast<int64_t>(latitude_.size()); }
  int64_t width() const { return static_cast<int64_t>(longitude_.size()); }
  bool has(const std::string& variable) const { return variables_.contains(variable); }
  std::vector<std::string> variables() const;  // in the order of their names
  // Empty where the file says none.
  const std::string& unit(const std::string& variable) const { return variables_.at(variable).unit; }

  // As these data have it: `names` are those of forecast_layout.h for the target's channels, and stand from here on for what the
  // file calls otherwise (field_names.h); fields are read as they lie on the data's grid. DataError for another grid, or a
  // channel of another unit.
  void fit(const SampleSpec& truth, const std::vector<std::string>& names);

  // Channels of fit() of which the data say a unit and the file says none.
  const std::vector<std::string>& without_units() const { return without_units_; }

  // (member, latitude, longitude) of one field.
  void read(const std::string& variable, int64_t start, int64_t lead, std::span<float> out) const;

 private:
  std::vector<double> numbers_of(const std::string& name) const;
  std::string dimension(const std::vector<std::string>& names) const;
  void read_times();
  void add_valid_times(size_t num_leads);
  void add_variables();
  void add_levels(const std::string& name, const StoredArrayPtr& array);

  ArrayFile file_;
  std::string start_name_, lead_name_, member_name_, level_name_, latitude_name_, longitude_name_;
  Calendar calendar_ = Calendar::ProlepticGregorian;
  std::vector<int64_t> starts_;
  std::vector<std::vector<int64_t>> valid_times_;
  ForecastLeads leads_;
  int64_t members_ = 1;
  std::vector<double> member_numbers_;
  std::vector<double> latitude_, longitude_;
  GridTurn turn_;
  std::vector<std::string> without_units_;
  FieldVariables variables_;  // (start, [member,] lead, [level,] latitude, longitude)
};

}  // namespace welkin::data
