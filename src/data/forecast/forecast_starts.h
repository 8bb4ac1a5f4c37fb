// SPDX-License-Identifier: Apache-2.0
// Which states a forecast begins with, as the flag --from says it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/forecast/field_states.h"

namespace welkin::data {

// "newest", "all", or dates such as 2019-03-25T06,2019-03-26; in seconds, ascending. `steps_before`: steps of the forecast before
// a start whose states are needed, too (lagged members, breeding): "all" leaves out starts without them. ConfigError for a date
// that cannot be read or stands twice; DataError for one of which there is no state.
std::vector<int64_t> choose_starts(const FieldStates& states, const std::string& from, int64_t steps_before);

}  // namespace welkin::data
