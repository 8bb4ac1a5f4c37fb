// SPDX-License-Identifier: Apache-2.0
// Mean, deviation and time-mean map of channels over the training part, in one pass and double precision (Chan, Golub and LeVeque
// 1983).
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace welkin::data::ingest {

struct ChannelStatistics {
  int64_t count = 0;             // points with a value
  double mean = 0, squares = 0;  // sum of squared deviations from the mean
  float lowest = std::numeric_limits<float>::infinity(), highest = -std::numeric_limits<float>::infinity();

  void add(std::span<const float> values);  // NaN is left out
  bool is_constant() const { return count > 0 && lowest == highest; }
  double deviation() const;  // of the population (divided by the count), as the tutorials' statistics
};

class PartStatistics {
 public:
  PartStatistics(int64_t num_channels, int64_t num_points);

  // One field of a channel; NaN is left out.
  void add(int64_t channel, std::span<const float> values);

  const ChannelStatistics& channel(int64_t index) const { return channels_[static_cast<size_t>(index)]; }
  // The mean over time at each point; the channel's mean where there never was a value.
  std::vector<float> time_mean(int64_t index) const;

 private:
  int64_t num_points_;
  std::vector<ChannelStatistics> channels_;
  std::vector<double> sums_;     // (channel, point)
  std::vector<int32_t> counts_;  // (channel, point)
};

}  // namespace welkin::data::ingest
