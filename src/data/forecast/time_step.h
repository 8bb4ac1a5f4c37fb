// SPDX-License-Identifier: Apache-2.0
// The time between two states of a file: seconds, or whole months of a calendar, which differ in length.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/sample/calendar.h"

namespace welkin::data {

// Where in its month the time of a monthly field lies: at the same day and hour, in the middle between the month's ends as CMIP
// has it, or on its last day.
enum class PlaceInMonth { Day, Middle, LastDay };

struct TimeStep {
  int64_t seconds = 0;                     // of every step, or
  int64_t months = 0;                      // whole months; one of the two is not 0
  PlaceInMonth place = PlaceInMonth::Day;  // of every time, where steps are months

  bool is_known() const { return seconds != 0 || months != 0; }
};

// Hours of a step. A month has its mean length in the Gregorian calendar, 30.44 days.
double hours_of(const TimeStep& step);

// The step of ascending times; unknown where there are fewer than two. DataError for steps that are neither equal nor months.
TimeStep time_step_of(const std::vector<int64_t>& times, Calendar calendar, const std::string& path);

// `count` steps after a time, negative ones before it: at the step's place in the month. A day that a month does not have becomes
// its last one.
int64_t stepped(const TimeStep& step, Calendar calendar, int64_t seconds, int64_t count);

}  // namespace welkin::data
