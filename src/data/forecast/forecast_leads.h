// SPDX-License-Identifier: Apache-2.0
// The leads of a forecast as its file numbers them: hours after the start, or steps where steps are months, whose hours differ
// from start to start.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/forecast/time_step.h"
#include "data/storage/stored_array.h"

namespace welkin::data {

struct ForecastLeads {
  std::vector<double> numbers;
  bool in_hours = true;  // else steps

  std::string text(int64_t lead) const;  // "6 h", "2 steps"
};

// Leads 1 to `count` of a forecast, each `stride` steps of its data.
ForecastLeads leads_of(const TimeStep& step, int64_t stride, int64_t count);

// The leads that the array `name` gives. `valid_times`: (start, lead) of a file that says them, else empty. Numbers without a
// unit are hours if they give the valid times of every start the same hours, and steps if not. DataError for numbers that are not
// finite, and for a unit without a length where there are no valid times.
ForecastLeads read_leads(const ArrayFile& file, const std::string& name, const std::vector<int64_t>& starts,
                         const std::vector<std::vector<int64_t>>& valid_times);

}  // namespace welkin::data
