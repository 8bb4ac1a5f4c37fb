// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/part_statistics.h"

#include <algorithm>
#include <cmath>

namespace welkin::data::ingest {

double ChannelStatistics::deviation() const { return count > 0 ? std::sqrt(squares / static_cast<double>(count)) : 0.0; }

PartStatistics::PartStatistics(int64_t num_channels, int64_t num_points)
    : num_points_(num_points),
      channels_(static_cast<size_t>(num_channels)),
      sums_(static_cast<size_t>(num_channels * num_points)),
      counts_(static_cast<size_t>(num_channels * num_points)) {}

void ChannelStatistics::add(std::span<const float> values) {
  int64_t more = 0;
  double sum = 0;
  for (const float value : values) {
    if (std::isnan(value)) continue;
    ++more;
    sum += value;
    lowest = std::min(lowest, value);
    highest = std::max(highest, value);
  }
  if (more == 0) return;
  const double their_mean = sum / static_cast<double>(more);
  double their_squares = 0;
  for (const float value : values) {
    if (!std::isnan(value)) their_squares += (value - their_mean) * (value - their_mean);
  }
  const double before = static_cast<double>(count), now = static_cast<double>(more), shift = their_mean - mean;
  count += more;
  mean += shift * now / (before + now);
  squares += their_squares + shift * shift * before * now / (before + now);
}

void PartStatistics::add(int64_t channel, std::span<const float> values) {
  channels_[static_cast<size_t>(channel)].add(values);
  double* sums = sums_.data() + channel * num_points_;
  int32_t* counts = counts_.data() + channel * num_points_;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) continue;
    sums[i] += values[i];
    ++counts[i];
  }
}

std::vector<float> PartStatistics::time_mean(int64_t index) const {
  const auto first = static_cast<size_t>(index * num_points_);
  std::vector<float> map(static_cast<size_t>(num_points_));
  for (size_t i = 0; i < map.size(); ++i) {
    const int32_t count = counts_[first + i];
    map[i] = static_cast<float>(count > 0 ? sums_[first + i] / count : channel(index).mean);
  }
  return map;
}

}  // namespace welkin::data::ingest
