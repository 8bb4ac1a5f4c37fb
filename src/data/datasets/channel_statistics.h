// SPDX-License-Identifier: Apache-2.0
// Mean and standard deviation of each channel, as npy files of shape (1, C, 1, 1), and their use. Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace welkin::data {

struct ChannelStatistics {
  std::vector<double> mean, std;  // size C; as precise as the files are
};

// Float32 or float64 of either byte order. DataError with file, channel and value for a shape other than (1, channels, 1, 1) or
// (channels), for NaN or infinity, and for a standard deviation that is not positive. `names` may be empty.
ChannelStatistics load_channel_statistics(const std::filesystem::path& means, const std::filesystem::path& stds, int64_t channels,
                                          const std::vector<std::string>& names);

// (x - mean) / std, each step computed in double and rounded to float32: numpy's result for statistics of either type. `values`
// are (channels, ...) row-major.
void normalise(std::span<float> values, const std::vector<double>& mean, const std::vector<double>& std);

}  // namespace welkin::data
