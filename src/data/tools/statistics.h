// SPDX-License-Identifier: Apache-2.0
// Statistics of a folder of training files in one pass: mean, standard deviation and range of each channel, and the mean map over
// time. Bounded memory, exact to double precision, independent of the number of files.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/cf/file_times.h"

namespace welkin::data {

// Count, mean and sum of squared deviations that can be joined (Chan, Golub, LeVeque 1983: no cancellation, order almost free).
class RunningMoments {
 public:
  void add(std::span<const float> values);  // NaN and infinity are counted apart
  void join(const RunningMoments& other);

  int64_t count() const { return count_; }  // finite values
  int64_t num_nonfinite() const { return num_nonfinite_; }
  double mean() const { return mean_; }
  double std() const;  // of the population; 0 for no values
  float min() const { return min_; }
  float max() const { return max_; }

 private:
  int64_t count_ = 0, num_nonfinite_ = 0;
  double mean_ = 0, squares_ = 0;
  float min_ = 0, max_ = 0;
};

struct FolderStatistics {
  std::vector<std::string> channels;  // names, or numbers
  std::vector<RunningMoments> moments;
  std::vector<double> time_mean;          // (C, H, W)
  std::vector<double> climatology;        // (12, C, H, W): of each calendar month; empty unless asked for
  std::array<int64_t, 12> month_steps{};  // steps of each month
  int64_t num_files = 0, steps = 0, height = 0, width = 0;

  std::string doubled_times;  // the warning where two files hold the same times

  // That warning, and a line for each channel that has a value which usually stands for a missing one, and which no attribute
  // declares.
  std::vector<std::string> warnings() const;
};

struct StatisticsOptions {
  int num_threads = 0;                            // 0: the cores of this process. The result does not depend on it
  bool climatology = false;                       // needs the data set `time`
  TimeKeys time{};                                // of files that do not say the units of their times
  std::vector<std::string> variables{}, times{};  // of an archive (data/cf/archive.h) in the place of training files
  std::vector<double> levels{};
};

// Statistics of all training files in the folder, or of an archive, in one pass. Values that a file declares as missing are
// left out and counted as not finite in `moments`. DataError when files differ, or hold infinity or other NaN (channel, file
// and step are named).
FolderStatistics compute_statistics(const std::filesystem::path& folder, const StatisticsOptions& options = {});

// global_means.npy, global_stds.npy, global_mins.npy and global_maxs.npy (1, C, 1, 1), time_means.npy (1, C, H, W) and, where it
// was asked for, climatology.npy (12, C, H, W), float32, into an existing or new folder. A month without a step gets the time
// mean. DataError naming the channel when a standard deviation is zero, unless `allow_constant`: then it is written as 1.
void write_statistics(const FolderStatistics& statistics, const std::filesystem::path& folder, bool allow_constant);

}  // namespace welkin::data
