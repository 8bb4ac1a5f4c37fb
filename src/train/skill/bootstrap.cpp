// SPDX-License-Identifier: Apache-2.0
#include "train/skill/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/philox.h"

namespace welkin::train {
namespace {

double percentile_of(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(place);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (place - static_cast<double>(low));
}

}  // namespace

Resampling::Resampling(int64_t num_cases, int64_t replicates, int64_t block, uint64_t seed) : num_cases_(num_cases) {
  const uint64_t key = stream_key(seed, "skill.bootstrap");
  const int64_t length = std::clamp<int64_t>(block, 1, std::max<int64_t>(1, num_cases));
  for (int64_t replicate = 0; replicate < replicates && num_cases > 0; ++replicate) {
    std::vector<double> counts(static_cast<size_t>(num_cases), 0.0);
    for (int64_t drawn = 0, number = 0; drawn < num_cases; ++number) {
      const PhiloxBlock words = philox(key, static_cast<uint64_t>(replicate), static_cast<uint64_t>(number));
      const auto first = static_cast<int64_t>(bounded(words[0], words[1], static_cast<uint64_t>(num_cases - length + 1)));
      for (int64_t i = 0; i < length && drawn < num_cases; ++i, ++drawn) counts[static_cast<size_t>(first + i)] += 1;
    }
    counts_.push_back(std::move(counts));
  }
}

Interval Resampling::interval(const std::function<double(const std::vector<double>&)>& statistic) const {
  constexpr double kNoBound = std::numeric_limits<double>::quiet_NaN(), kTail = 0.025;
  Interval interval{
      .value = statistic(std::vector<double>(static_cast<size_t>(num_cases_), 1.0)), .low = kNoBound, .high = kNoBound};
  std::vector<double> drawn;
  for (const auto& counts : counts_) {
    if (const double value = statistic(counts); !std::isnan(value)) drawn.push_back(value);
  }
  if (drawn.empty()) return interval;
  std::ranges::sort(drawn);
  interval.low = percentile_of(drawn, kTail), interval.high = percentile_of(drawn, 1 - kTail);
  return interval;
}

}  // namespace welkin::train
