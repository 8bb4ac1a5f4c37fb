// SPDX-License-Identifier: Apache-2.0
// The units in which scores and pictures show a channel, and the conversion of a model's values to them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "data/sample/dataset.h"

namespace welkin::train {

// shown = normalised * scale + offset: normalisation and the file's own offset and scale are undone. A logarithm is not, as it
// changes what an error means: the unit then says so, "log10(g cm-3)" of a file's logarithm, "ln(1 + mm)" of one that is taken
// while reading. `scale` and `offset` are empty where nothing is to be undone, and may end before the channels do: what follows
// (computed channels) stays as it is.
struct ChannelUnits {
  std::vector<std::string> units;  // one per channel; empty where unknown
  std::vector<double> scale, offset;

  double scale_of(size_t channel) const { return channel < scale.size() ? scale[channel] : 1.0; }
};

ChannelUnits input_units(const data::SampleSpec& spec);
ChannelUnits target_units(const data::SampleSpec& spec);

}  // namespace welkin::train
