// SPDX-License-Identifier: Apache-2.0
#include "train/evaluate/channel_units.h"

#include <algorithm>

#include "core/text.h"

namespace welkin::train {
namespace {

ChannelUnits units_of(const data::ArraySpec& array, const std::vector<double>& mean, const std::vector<double>& deviation,
                      const std::vector<int64_t>& logarithms) {
  ChannelUnits shown{.units = array.units, .scale = deviation, .offset = mean};
  const size_t count = std::max(deviation.size(), array.scaling.size());
  shown.scale.resize(count, 1.0);
  shown.offset.resize(count, 0.0);
  for (size_t c = 0; c < array.units.size(); ++c) {
    const bool is_scaled = c < array.scaling.size();
    if (std::ranges::find(logarithms, static_cast<int64_t>(c)) != logarithms.end()) {
      shown.units[c] = is_scaled || array.units[c].empty() ? "ln(1 + value in the file)" : cat("ln(1 + ", array.units[c], ")");
    } else if (is_scaled) {
      shown.scale[c] *= array.scaling[c].scale;
      shown.offset[c] = shown.offset[c] * array.scaling[c].scale + array.scaling[c].offset;
    }
  }
  return shown;
}

}  // namespace

ChannelUnits input_units(const data::SampleSpec& spec) {
  return units_of(spec.input, spec.input_mean, spec.input_std, spec.input_log);
}

ChannelUnits target_units(const data::SampleSpec& spec) {
  return units_of(spec.target, spec.target_mean, spec.target_std, spec.target_log);
}

}  // namespace welkin::train
