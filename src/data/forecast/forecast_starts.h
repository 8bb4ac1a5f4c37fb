// SPDX-License-Identifier: Apache-2.0
// Chooses the states that a forecast begins with, by the flag --from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/forecast/field_states.h"

namespace welkin::data {

struct StartNeeds {
  int64_t steps_before = 0;  // steps of the forecast before a start whose states are needed, too (lagged members, breeding)
  int64_t steps = 1;         // of the forecast: each after the first needs the forcing of the time before it
};

// "newest", "all", or dates such as 2019-03-25T06,2019-03-26; in seconds, ascending. "all" leaves out starts without what they
// need. ConfigError for a date that cannot be read or occurs twice; DataError for one without it.
std::vector<int64_t> choose_starts(const FieldStates& states, const std::string& from, const StartNeeds& needs);

}  // namespace welkin::data
