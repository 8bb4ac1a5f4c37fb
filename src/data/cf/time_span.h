// SPDX-License-Identifier: Apache-2.0
// A span of time as its first and last date, each as precise as it is written. Torch-free.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "data/sample/calendar.h"

namespace welkin::data {

struct TimeSpan {
  int64_t begin = std::numeric_limits<int64_t>::min(), end = std::numeric_limits<int64_t>::max();  // seconds, end excluded

  bool holds(int64_t seconds) const { return seconds >= begin && seconds < end; }
};

// {first, last}: "1979", "1979-03", "1979-03-01", "1979-03-01T06"; the last date stands for all of its year, month, day or hour,
// as in xarray's slices. Empty: all times. ConfigError for another number of dates, one that cannot be read, or an end before its
// beginning; `key` is what gave them.
TimeSpan time_span(const std::vector<std::string>& dates, Calendar calendar, const std::string& key);

}  // namespace welkin::data
