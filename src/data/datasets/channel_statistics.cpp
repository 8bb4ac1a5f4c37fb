// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/channel_statistics.h"

#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "data/formats/npy_file.h"
#include "data/storage/channel_op.h"

namespace welkin::data {
namespace {

constexpr int64_t kMostChannels = 1 << 16;

std::string channel_text(const std::vector<std::string>& names, size_t channel) {
  return channel < names.size() ? cat(channel, " (", names[channel], ")") : cat(channel);
}

std::vector<double> load_per_channel(const std::filesystem::path& path, int64_t channels) {
  const NpyFile file(path);
  const auto& shape = file.header().shape;
  const bool is_row = shape.size() == 1 || (shape.size() == 4 && shape[0] == 1 && shape[2] == 1 && shape[3] == 1);
  const int64_t found = is_row ? file.header().num_values() : -1;
  if (found != channels) {
    throw DataError("data",
                    cat("statistics do not fit the fields: path=", path.string(), ", shape=(", join(shape, ", "),
                        "), expected=(1, ", channels, ", 1, 1)"),
                    "Compute them again with welkin data stats");
  }
  return file.read_doubles(kMostChannels);
}

[[noreturn]] void refuse_value(std::string_view what, const std::filesystem::path& path, const std::string& channel,
                               double value) {
  throw DataError("data", cat(what, ": path=", path.string(), ", channel=", channel, ", value=", value),
                  "Compute the statistics again with welkin data stats, and leave out channels that never change");
}

}  // namespace

ChannelStatistics load_channel_statistics(const std::filesystem::path& means, const std::filesystem::path& stds, int64_t channels,
                                          const std::vector<std::string>& names) {
  ChannelStatistics statistics{load_per_channel(means, channels), load_per_channel(stds, channels)};
  for (size_t c = 0; c < statistics.mean.size(); ++c) {
    const double mean = statistics.mean[c], std = statistics.std[c];
    if (!std::isfinite(mean)) refuse_value("a mean that is not finite", means, channel_text(names, c), mean);
    if (!std::isfinite(std)) refuse_value("a standard deviation that is not finite", stds, channel_text(names, c), std);
    if (!(std > 0)) refuse_value("a standard deviation that is not positive", stds, channel_text(names, c), std);
  }
  return statistics;
}

void normalise(std::span<float> values, const std::vector<double>& mean, const std::vector<double>& std) {
  if (mean.empty()) return;
  WELKIN_CHECK(values.size() % mean.size() == 0 && std.size() == mean.size(), "statistics do not fit the values");
  const size_t size = values.size() / mean.size();
  for (size_t c = 0; c < mean.size(); ++c) {
    apply({.mean = mean[c], .std = std[c]}, values.data() + c * size, static_cast<int64_t>(size));
  }
}

}  // namespace welkin::data
