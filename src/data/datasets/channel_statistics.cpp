// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/channel_statistics.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "config/draft/channel_settings.h"
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

[[noreturn]] void refuse_kind(const std::string& channel, const std::string& kind) {
  throw ConfigError("data", cat("no kind of normalization: channel=", channel, ", normalization=", kind),
                    "Choose standard, minmax, none, or log:EPS as in log:1e-5");
}

// "log:1e-5" -> 1e-5.
double eps_of(const std::string& channel, const std::string& kind) {
  double eps = 0;
  const auto [end, problem] = std::from_chars(kind.data() + 4, kind.data() + kind.size(), eps);
  const bool is_number = problem == std::errc() && end == kind.data() + kind.size();
  if (!is_number || !std::isfinite(eps) || !(static_cast<float>(eps) > 0)) refuse_kind(channel, kind);
  return eps;
}

// Lowest and highest value of each channel, read where a channel asks for them.
struct ChannelRanges {
  std::vector<double> low, high;
};

ChannelRanges load_ranges(const std::filesystem::path& means, int64_t channels) {
  const std::filesystem::path folder = means.parent_path();
  return {load_per_channel(folder / kMinsFile, channels), load_per_channel(folder / kMaxsFile, channels)};
}

Normalization min_max(const ChannelRanges& ranges, size_t c, const std::vector<std::string>& names,
                      const std::filesystem::path& means) {
  const double range = ranges.high[c] - ranges.low[c];
  if (!std::isfinite(range) || !(range > 0))
    refuse_value("a range that is none", means.parent_path(), channel_text(names, c), range);
  return {.offset = ranges.low[c], .scale = range};
}

}  // namespace

std::vector<Normalization> normalizations(const ChannelStatistics& statistics, const std::filesystem::path& means,
                                          const std::vector<std::string>& names, const std::vector<std::string>& entries) {
  const auto kinds = config::settings_of(entries, "normalization", names);
  std::optional<ChannelRanges> ranges;
  std::vector<Normalization> normalizations;
  for (size_t c = 0; c < statistics.mean.size(); ++c) {
    const std::string kind = kinds[c].value_or("standard");
    if (kind == "standard") {
      normalizations.push_back({.offset = statistics.mean[c], .scale = statistics.std[c]});
    } else if (kind == "none") {
      normalizations.push_back({});
    } else if (kind.starts_with("log:")) {
      normalizations.push_back({.eps = eps_of(names[c], kind)});
    } else if (kind == "minmax") {
      if (!ranges) ranges = load_ranges(means, static_cast<int64_t>(names.size()));
      normalizations.push_back(min_max(*ranges, c, names, means));
    } else {
      refuse_kind(names[c], kind);
    }
  }
  return normalizations;
}

std::optional<double> spread_of(const Normalization& normalization, double std) {
  if (normalization.eps != 0) return std::nullopt;
  return std / normalization.scale;
}

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
