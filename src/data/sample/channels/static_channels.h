// SPDX-License-Identifier: Apache-2.0
// Input channels that are the same at all times and stand once in a file: orography, land mask, the mask of points with a value.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/sample/channels/extra_channels.h"

namespace welkin::data {

// Whole fields as a file has them, in their unit; NaN is a point without a value.
struct StaticFields {
  std::vector<std::string> names, units;  // size S
  int64_t height = 0, width = 0;
  std::vector<float> values;      // (S, height, width)
  std::vector<double> mean, std;  // size S, over all points with a value; 0 and 1 for masks, whose values lie in [0, 1]

  // Sets mean and std. DataError for a field without any value.
  void add_statistics(const std::string& source);
};

// A window of the fields as extra input channels, not normalised: the data set does it by mean and std. A point without a value
// has the mean.
class StaticChannels final : public ExtraChannels {
 public:
  // First row and column of the sample in the fields; columns go on at the first one behind the last.
  StaticChannels(StaticFields fields, int64_t row, int64_t column);

  int64_t count() const override { return static_cast<int64_t>(fields_.names.size()); }
  bool needs_time() const override { return false; }
  const std::vector<std::string>& names() const override { return fields_.names; }
  void fill(int64_t unix_seconds, const Region& region, std::span<float> out) const override;

  const StaticFields& fields() const { return fields_; }

 private:
  StaticFields fields_;
  int64_t row_, column_;
};

}  // namespace welkin::data
