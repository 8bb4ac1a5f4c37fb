// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/time_axis.h"

#include <algorithm>
#include <map>

#include "core/text.h"

namespace welkin::data::ingest {
namespace {

constexpr int64_t kShortestMonth = 27 * 86400;

int64_t month_count(int64_t time, Calendar calendar) {
  const Date date = to_date(calendar, time);
  return date.year * 12 + date.month;
}

// The commonest positive value of `distances`; the smaller of two equally common ones.
int64_t commonest(const std::map<int64_t, int64_t>& counts) {
  return std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; })->first;
}

}  // namespace

TimeStep find_step(std::span<const int64_t> times, Calendar calendar) {
  if (times.size() < 2) return {};
  std::map<int64_t, int64_t> seconds, months;
  for (size_t i = 1; i < times.size(); ++i) {
    ++seconds[times[i] - times[i - 1]];
    ++months[month_count(times[i], calendar) - month_count(times[i - 1], calendar)];
  }
  const bool monthly = seconds.size() > 1 && seconds.begin()->first >= kShortestMonth && months.begin()->first > 0;
  if (monthly) return {.seconds = 0, .months = commonest(months)};
  return {.seconds = commonest(seconds), .months = 0};
}

bool is_next(int64_t time, int64_t next, const TimeStep& step, Calendar calendar) {
  if (step.months > 0) return month_count(next, calendar) - month_count(time, calendar) == step.months;
  return next - time == step.seconds;
}

std::vector<Segment> find_segments(std::span<const int64_t> times, const TimeStep& step, Calendar calendar) {
  std::vector<Segment> segments;
  for (size_t i = 0; i < times.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    if (i == 0 || !is_next(times[i - 1], times[i], step, calendar)) segments.push_back({index, index});
    segments.back().end = index + 1;
  }
  return segments;
}

std::vector<Gap> find_gaps(std::span<const int64_t> times, const TimeStep& step, Calendar calendar) {
  std::vector<Gap> gaps;
  for (size_t i = 1; i < times.size(); ++i) {
    if (is_next(times[i - 1], times[i], step, calendar)) continue;
    const int64_t distance =
        step.months > 0 ? month_count(times[i], calendar) - month_count(times[i - 1], calendar) : times[i] - times[i - 1];
    const int64_t unit = step.months > 0 ? step.months : step.seconds;
    gaps.push_back({times[i - 1], times[i], distance % unit == 0 ? distance / unit - 1 : 0});
  }
  return gaps;
}

std::string describe(const TimeStep& step) {
  if (step.months > 0) return cat(step.months, step.months == 1 ? " month" : " months");
  if (step.seconds > 0 && step.seconds % 3600 == 0) return cat(step.seconds / 3600, " h");
  return cat(step.seconds, " s");
}

}  // namespace welkin::data::ingest
