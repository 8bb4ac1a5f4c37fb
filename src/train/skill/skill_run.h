// SPDX-License-Identifier: Apache-2.0
// Scores a forecast file, and a second one, against the states of a folder, beside persistence and a climatology.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/forecast/climatology.h"
#include "data/forecast/field_states.h"
#include "data/forecast/forecast_file.h"
#include "train/skill/regions.h"
#include "train/skill/skill_table.h"

namespace welkin::train {

// The files have been made to fit the truth (ForecastFile::fit, Climatology::fit).
struct SkillSources {
  const data::FieldStates& truth;
  const data::ForecastFile& forecast;
  const data::ForecastFile* second = nullptr;  // of the same leads; some starts at least are those of both
  const data::Climatology* climatology = nullptr;
};

// Means over starts of one channel at the last lead, (H, W); NaN where no truth is.
struct ErrorMaps {
  std::vector<double> bias, rmse;
};

// Zonal power (train/learn/metrics_spectrum.h) of one channel at one lead, mean over starts and members.
struct LeadSpectra {
  std::vector<double> forecast, truth;
};

struct Skill {
  std::vector<std::string> channels, units, regions;
  std::vector<std::string> missing;              // channels of the truth that the forecast does not hold
  std::vector<std::string> without_units;        // channels whose unit the forecast does not say
  std::vector<std::string> without_climatology;  // scored channels that the climatology does not hold, where there is one
  std::vector<int64_t> region_points;            // of one field, by region
  std::vector<double> leads;                     // in lead_unit, as the forecast's file numbers them
  std::string lead_unit = "h";                   // or "steps"
  std::vector<int64_t> without_state;   // by lead: starts that have a truth and no state for persistence, which are not scored
  std::vector<int64_t> without_second;  // by lead: starts with a truth that the second forecast lacks, which are not scored
  int64_t num_starts = 0, height = 0, width = 0;
  std::vector<std::vector<size_t>> seasons;       // (start, lead): a place in kSeasons, from 1
  std::vector<SkillTable> tables;                 // the forecast first, then "second", "persistence", "climatology"
  std::vector<ErrorMaps> maps;                    // by channel
  std::vector<std::vector<LeadSpectra>> spectra;  // (channel, lead)

  const SkillTable* find(std::string_view name) const;
  // Starts whose field of that lead is of a season (0: all).
  std::vector<int64_t> starts_of(size_t season, int64_t lead) const;
};

// DataError where calendars, starts, leads or channels do not fit, and where no field has a truth. `progress` is told how many
// starts are done.
Skill score_forecast(const SkillSources& sources, const std::vector<ScoreRegion>& regions,
                     const std::function<void(int64_t)>& progress);

}  // namespace welkin::train
