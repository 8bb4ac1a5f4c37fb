// SPDX-License-Identifier: Apache-2.0
#include "data/forecast/forecast_leads.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "core/text.h"
#include "data/sample/time_unit.h"

namespace welkin::data {
namespace {

constexpr double kHourSeconds = 3600;

double hours_between(int64_t start, int64_t valid) { return static_cast<double>(valid - start) / kHourSeconds; }

// Hours of the leads, where they are those of every start.
std::optional<std::vector<double>> common_hours(const std::vector<int64_t>& starts,
                                                const std::vector<std::vector<int64_t>>& valid_times) {
  std::vector<double> common;
  for (size_t start = 0; start < starts.size(); ++start) {
    std::vector<double> hours;
    for (const int64_t valid : valid_times[start]) hours.push_back(hours_between(starts[start], valid));
    if (start == 0) common = hours;
    if (hours != common) return {};
  }
  return common;
}

// To whole seconds, as times are.
std::vector<double> rounded_hours(std::vector<double> numbers, double unit) {
  for (double& number : numbers) number = std::round(number * unit) / kHourSeconds;
  return numbers;
}

}  // namespace

std::string ForecastLeads::text(int64_t lead) const {
  const double number = numbers.at(static_cast<size_t>(lead));
  return cat(number, in_hours ? " h" : number == 1 ? " step" : " steps");
}

ForecastLeads leads_of(const TimeStep& step, int64_t stride, int64_t count) {
  ForecastLeads leads{.numbers = std::vector<double>(static_cast<size_t>(count)), .in_hours = step.months == 0};
  std::iota(leads.numbers.begin(), leads.numbers.end(), 1.0);
  if (!leads.in_hours) return leads;
  for (double& number : leads.numbers) number *= static_cast<double>(stride * step.seconds) / kHourSeconds;
  return leads;
}

ForecastLeads read_leads(const ArrayFile& file, const std::string& name, const std::vector<int64_t>& starts,
                         const std::vector<std::vector<int64_t>>& valid_times) {
  constexpr double kFarthest = 3.2e13;  // seconds in a million years
  std::vector<double> numbers = file.array(name)->read_doubles();
  const auto texts = file.texts(name, "units");
  const std::string unit = texts.empty() ? "" : texts.front();
  const std::optional<double> seconds = seconds_of_unit(unit);
  for (const double number : numbers) {
    if (std::abs(number) * seconds.value_or(1) < kFarthest) continue;
    throw DataError("forecast",
                    cat("a lead is no length of time: path=", file.path.string(), ", dataset=", name, ", lead=", number),
                    "Make the file again, without missing leads");
  }
  if (seconds) return {.numbers = rounded_hours(std::move(numbers), *seconds), .in_hours = true};
  if (valid_times.empty()) {
    throw DataError(
        "forecast",
        cat("the leads have no unit that has a length: path=", file.path.string(), ", dataset=", name, ", units=", unit),
        "Give them in hours, days, minutes or seconds, or say the times of all fields in an array valid_time");
  }
  constexpr std::string_view kCounted = "1";
  const auto hours = unit == kCounted ? std::nullopt : common_hours(starts, valid_times);
  return hours ? ForecastLeads{.numbers = *hours, .in_hours = true}
               : ForecastLeads{.numbers = std::move(numbers), .in_hours = false};
}

}  // namespace welkin::data
