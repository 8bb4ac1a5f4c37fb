// SPDX-License-Identifier: Apache-2.0
// Mean and standard deviation of each channel, as npy files of shape (1, C, 1, 1), and the normalisation of
// channels by them. Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace welkin::data {

// Files beside the means.
inline constexpr const char* kMinsFile = "global_mins.npy";
inline constexpr const char* kMaxsFile = "global_maxs.npy";

struct ChannelStatistics {
  std::vector<double> mean, std;  // size C; as precise as the files are
};

// Float32 or float64 of either byte order. DataError with file, channel and value for a shape other than (1, channels, 1, 1) or
// (channels), for NaN or infinity, and for a standard deviation that is not positive. `names` may be empty.
ChannelStatistics load_channel_statistics(const std::filesystem::path& means, const std::filesystem::path& stds, int64_t channels,
                                          const std::vector<std::string>& names);

// The normalisation of one channel: (y - offset) / scale, where y = x, or log(1 + x / eps) where there is an eps.
struct Normalization {
  double offset = 0, scale = 1;
  double eps = 0;  // 0: no logarithm

  bool is_standard(const ChannelStatistics& statistics, size_t channel) const {
    return eps == 0 && offset == statistics.mean[channel] && scale == statistics.std[channel];
  }
};

// The standard deviation of (y - offset) / scale over the data. Nullopt with a logarithm: the
// statistics of x say nothing of it.
std::optional<double> spread_of(const Normalization& normalization, double std);

// The normalisation of each channel: by mean and standard deviation, unless `entries` (channel=kind, the key normalization) say
// minmax, log:EPS or one. minmax maps lowest and highest value, from global_mins.npy and global_maxs.npy beside `means`, to 0
// and 1. ConfigError for another kind, DataError where these files do not fit or a channel never changes.
std::vector<Normalization> normalizations(const ChannelStatistics& statistics, const std::filesystem::path& means,
                                          const std::vector<std::string>& names, const std::vector<std::string>& entries);

// (x - mean) / std, each step computed in double and rounded to float32: numpy's result for statistics of either type. `values`
// are (channels, ...) row-major.
void normalise(std::span<float> values, const std::vector<double>& mean, const std::vector<double>& std);

}  // namespace welkin::data
