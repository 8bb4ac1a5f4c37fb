// SPDX-License-Identifier: Apache-2.0
#include "data/forecast/forecast_starts.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include "core/error.h"
#include "core/text.h"

namespace welkin::data {
namespace {

// The first time of which there is no state, of a start and those before it.
std::optional<int64_t> missing_state(const FieldStates& states, int64_t start, int64_t steps_before) {
  for (int64_t before = 0; before <= steps_before; ++before) {
    const int64_t time = states.valid_time(start, -before);
    if (!states.index_of(time)) return time;
  }
  return std::nullopt;
}

// The first time of which there is no forcing, after a start.
std::optional<int64_t> missing_forcing(const FieldStates& states, int64_t start, int64_t steps) {
  for (int64_t lead = 1; lead < steps; ++lead) {
    const int64_t time = states.valid_time(start, lead);
    if (!states.has_forcing(time)) return time;
  }
  return std::nullopt;
}

std::vector<int64_t> given_starts(const FieldStates& states, const std::string& from) {
  std::vector<int64_t> starts;
  std::istringstream dates(from);
  for (std::string date; std::getline(dates, date, ',');) starts.push_back(parse_date(date, states.calendar()));
  std::ranges::sort(starts);
  if (!starts.empty() && std::ranges::adjacent_find(starts) == starts.end()) return starts;
  throw ConfigError("forecast", cat("not a list of different dates: --from=", from),
                    "Write newest, all, or dates such as 2019-03-25T06,2019-03-26T06");
}

}  // namespace

std::vector<int64_t> choose_starts(const FieldStates& states, const std::string& from, const StartNeeds& needs) {
  const Calendar calendar = states.calendar();
  std::vector<int64_t> starts = from == "newest" ? std::vector{states.times().back()}
                                : from == "all"  ? states.times()
                                                 : given_starts(states, from);
  if (from == "all") {
    std::erase_if(starts, [&](int64_t start) { return missing_state(states, start, needs.steps_before).has_value(); });
    const std::vector<int64_t> with_states = starts;
    std::erase_if(starts, [&](int64_t start) { return missing_forcing(states, start, needs.steps).has_value(); });
    if (!starts.empty()) return starts;
    starts = with_states;
  }
  for (const int64_t start : starts) {
    if (const auto missing = missing_state(states, start, needs.steps_before)) {
      throw DataError("forecast",
                      cat("there is no state of that time: time=", format_date(calendar, *missing),
                          ", start=", format_date(calendar, start), ", first=", format_date(calendar, states.times().front()),
                          ", newest=", format_date(calendar, states.times().back())),
                      "Choose a start that the files hold, with the states before it that history, lagged members and breeding "
                      "need");
    }
    if (const auto missing = missing_forcing(states, start, needs.steps)) states.need_forcing(*missing);
  }
  if (!starts.empty()) return starts;
  throw DataError("forecast", cat("no state has so many before it: steps_before=", needs.steps_before),
                  "Give longer files, or fewer lagged members or cycles");
}

}  // namespace welkin::data
