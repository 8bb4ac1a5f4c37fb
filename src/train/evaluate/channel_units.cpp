// SPDX-License-Identifier: Apache-2.0
#include "train/evaluate/channel_units.h"

#include <algorithm>

#include "core/text.h"

namespace welkin::train {
namespace {

// "ln(1 + mm)", "ln(1 + mm / 1e-05)".
std::string logarithm_unit(const data::ArraySpec& array, size_t channel, double eps) {
  const bool is_stored = channel < array.scaling.size() || array.units[channel].empty();
  return cat("ln(1 + ", is_stored ? "value in the file" : array.units[channel], eps == 1 ? "" : cat(" / ", eps), ")");
}

ChannelUnits units_of(const data::ArraySpec& array, const data::ArrayTransform& transform) {
  ChannelUnits shown{.units = array.units, .scale = transform.std, .offset = transform.mean};
  const size_t count = std::max(transform.std.size(), array.scaling.size());
  shown.scale.resize(count, 1.0);
  shown.offset.resize(count, 0.0);
  for (size_t c = 0; c < array.units.size(); ++c) {
    const auto logarithm = std::ranges::find(transform.log, static_cast<int64_t>(c));
    if (logarithm != transform.log.end()) {
      const auto place = static_cast<size_t>(logarithm - transform.log.begin());
      shown.units[c] = logarithm_unit(array, c, transform.log_eps.empty() ? 1.0 : transform.log_eps[place]);
    } else if (c < array.scaling.size()) {
      shown.scale[c] *= array.scaling[c].scale;
      shown.offset[c] = shown.offset[c] * array.scaling[c].scale + array.scaling[c].offset;
    }
  }
  return shown;
}

}  // namespace

ChannelUnits input_units(const data::SampleSpec& spec) { return units_of(spec.input, data::input_transform(spec)); }

ChannelUnits target_units(const data::SampleSpec& spec) { return units_of(spec.target, data::target_transform(spec)); }

}  // namespace welkin::train
