// SPDX-License-Identifier: Apache-2.0
// Timing helpers for figures that several ranks measure together.
#pragma once

#include <ATen/ops/full.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

#include "core/stopwatch.h"
#include "parallel/comm/collectives.h"

namespace welkin::bench {

inline double of_slowest(const parallel::Group& group, double seconds) {
  return parallel::all_reduce(group, at::full({1}, seconds, at::kDouble), parallel::Reduction::Max).item<double>();
}

inline double median_of(std::vector<double> values) {
  const auto middle = static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), values.begin() + middle, values.end());
  return *(values.begin() + middle);
}

// Seconds that the slowest member takes for `work`, which all members begin together.
inline double seconds_together(const parallel::Group& group, const std::function<void()>& work) {
  parallel::barrier(group);
  const Stopwatch watch;
  work();
  return of_slowest(group, watch.seconds());
}

}  // namespace welkin::bench
