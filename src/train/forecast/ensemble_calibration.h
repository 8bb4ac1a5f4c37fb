// SPDX-License-Identifier: Apache-2.0
// Calibration of an ensemble's spread by the scores of earlier forecasts. Each member keeps its side of the mean (member by
// member, Van Schaeybroeck and Vannitsem 2015, without the regression on the mean):
//   x'_m = mean - bias + factor (x_m - mean), factor = 1 / spread_skill
// per channel and lead. Without its bias the mean has the error sqrt(rmse^2 - bias^2), and the factor is that much smaller.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "data/forecast/forecast_file.h"

namespace welkin::train {

struct LeadCalibration {
  double factor = 1;  // of a member's distance from the mean
  double bias = 0;    // in the channel's unit
};

struct CalibrationOptions {
  std::filesystem::path scores;  // of `welkin evaluate --forecast FILE --json SCORES`
  std::string region;            // of the scores; empty: the only one, or "global" among several
  bool removes_bias = false;
};

class EnsembleCalibration {
 public:
  // DataError for a file that has no spread of an ensemble; ConfigError for a region that it does not have.
  explicit EnsembleCalibration(const CalibrationOptions& options);

  // `variable` as forecast files name a channel of the scores: ours, or another's (data/forecast/field_names.h).
  bool has(const std::string& variable) const { return names_.contains(variable); }
  const std::string& channel_of(const std::string& variable) const { return names_.at(variable); }  // its name in the scores
  bool in_hours() const { return in_hours_; }  // the scores' leads, else in steps
  // Of leads in that unit the one with this place from 0. DataError for a lead without a score, or without spread.
  LeadCalibration at(const std::string& variable, const data::ForecastLeads& leads, int64_t number) const;
  // All numbers of it: equal texts, equal calibrations.
  std::string text() const;

 private:
  struct Channel {
    std::vector<double> leads;
    std::vector<LeadCalibration> calibrations;
  };

  std::filesystem::path path_;
  bool in_hours_ = true;
  std::map<std::string, Channel> channels_;   // by the channel's name in the scores
  std::map<std::string, std::string> names_;  // of variables: the channel
};

// `members` holds (member, point) of one field, which it changes in place. A point with a missing member is missing in all.
void calibrate_members(std::span<float> members, int64_t num_members, const LeadCalibration& calibration);

struct CalibratedFile {
  std::filesystem::path output;                // .zarr or .nc; must not exist
  std::string source;                          // which program made it
  std::map<std::string, float> at_least = {};  // by variable: the smallest value that it can have
};

// Writes `forecast` with calibrated members, in the layout and with the names of `welkin forecast`; other variables as they are.
// One field of all members is in memory. A run that was ended goes on where it was. Errors of ForecastStore; ConfigError for a
// single member, for no variable in common, and for a name in `at_least` that is none. `made` is told how many starts are done.
void write_calibrated(const data::ForecastFile& forecast, const EnsembleCalibration& calibration, const CalibratedFile& file,
                      const std::function<void(int64_t)>& made);

}  // namespace welkin::train
