// SPDX-License-Identifier: Apache-2.0
// Means and deviations of years that are simulated side by side. They have the same bytes for any number of threads: sums that
// threads share are sums of integers, and the others are added in the order of the years.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <span>
#include <vector>

namespace welkin::data::simulate {

class WeatherStatistics {
 public:
  WeatherStatistics(int64_t channels, int64_t points, int64_t years);

  // The sums of one year; owned by the thread that runs it.
  struct Year {
    std::vector<double> sum, squares;  // per channel
    std::vector<int64_t> field;        // (channel, point), units of 2^-20
    int64_t steps = 0;
  };
  Year begin_year() const;
  void add(Year& year, std::span<const float> fields) const;  // (channel, point)
  void finish_year(int64_t index, Year year);                 // thread-safe

  // global_means.npy and global_stds.npy (1, C, 1, 1), time_means.npy (1, C, height, width), float32.
  void write(const std::filesystem::path& folder, int64_t height, int64_t width) const;

 private:
  int64_t channels_, points_;
  std::mutex mutex_;
  std::vector<Year> years_;  // without their fields
  std::vector<int64_t> field_;
};

}  // namespace welkin::data::simulate
