// SPDX-License-Identifier: Apache-2.0
#include "data/sample/channels/static_channels.h"

#include <cmath>

#include "core/error.h"
#include "core/text.h"

namespace welkin::data {
namespace {

struct Moments {
  double mean = 0, std = 1;
};

Moments moments_of(std::span<const float> values, const std::string& source, const std::string& name) {
  double sum = 0, squares = 0;
  int64_t count = 0;
  bool is_share = true;  // every value lies in [0, 1]
  for (const float value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    ++count;
    is_share = is_share && value >= 0 && value <= 1;
  }
  if (count == 0) {
    throw DataError("data", cat("a static channel without a value: path=", source, ", channel=", name), "Leave it out");
  }
  if (is_share) return {};
  const double mean = sum / static_cast<double>(count);
  for (const float value : values) {
    if (!std::isnan(value)) squares += (value - mean) * (value - mean);
  }
  const double std = std::sqrt(squares / static_cast<double>(count));
  return {mean, std > 0 ? std : 1.0};
}

}  // namespace

void StaticFields::add_statistics(const std::string& source) {
  const auto plane = static_cast<size_t>(height * width);
  mean.clear(), std.clear();
  for (size_t c = 0; c < names.size(); ++c) {
    const Moments moments = moments_of(std::span(values).subspan(c * plane, plane), source, names[c]);
    mean.push_back(moments.mean);
    std.push_back(moments.std);
  }
}

StaticChannels::StaticChannels(StaticFields fields, int64_t row, int64_t column)
    : fields_(std::move(fields)), row_(row), column_(column) {
  const auto plane = static_cast<size_t>(fields_.height * fields_.width);
  for (size_t i = 0; i < fields_.values.size(); ++i) {
    float& value = fields_.values[i];
    if (std::isnan(value)) value = static_cast<float>(fields_.mean[i / plane]);
  }
}

void StaticChannels::fill(int64_t /*unix_seconds*/, const Region& region, std::span<float> out) const {
  size_t to = 0;
  for (int64_t c = 0; c < count(); ++c) {
    for (int64_t row = 0; row < region.extent[0]; ++row) {
      const int64_t from = (c * fields_.height + row_ + region.begin[0] + row) * fields_.width;
      for (int64_t column = 0; column < region.extent[1]; ++column) {
        out[to++] = fields_.values[static_cast<size_t>(from + (column_ + region.begin[1] + column) % fields_.width)];
      }
    }
  }
}

}  // namespace welkin::data
