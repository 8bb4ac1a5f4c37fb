// SPDX-License-Identifier: Apache-2.0
// One channel of a sample as `welkin predict` draws it: input, target, prediction and prediction - target, in the units of
// channel_units.h. Of a box the middle slice.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/sample/dataset.h"
#include "train/evaluate/channel_units.h"

namespace welkin::train {

// Indices of target channels by name; the first if no name is given. ConfigError, which lists the channels, for another name.
std::vector<int64_t> picture_channels(const data::SampleSpec& spec, const std::vector<std::string>& names);

// A channel's name as part of a file's: a slash would be a folder.
std::string name_in_file(const std::string& channel);

// "density [g cm-3]"
std::string with_unit(const data::ArraySpec& array, const ChannelUnits& shown, int64_t channel);

// (1, C, ...) each, as the model sees them.
struct SampleFields {
  at::Tensor input, target, prediction;
};

struct PictureTitle {
  std::string before, after;  // of the channel's name: "sample 3", ", lead 4"
};

// The input's panel is the newest step of the channel, or, where the input holds other quantities than the target (dark matter
// and gas), its first channel. The file is whole or absent.
void draw_sample(const data::SampleSpec& spec, const SampleFields& fields, int64_t channel, const PictureTitle& title,
                 const std::filesystem::path& path);

}  // namespace welkin::train
