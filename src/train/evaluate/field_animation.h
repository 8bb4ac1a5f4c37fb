// SPDX-License-Identifier: Apache-2.0
// Fields over the leads of a forecast as an animation: one picture per lead, each panel on one scale over all leads.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/sample/dataset.h"
#include "observe/image/animation.h"
#include "observe/image/color_map.h"
#include "observe/image/map_frame.h"

namespace welkin::train {

struct AnimatedPanel {
  std::string title;
  std::vector<at::Tensor> planes{};  // (H, W) float32 on the CPU, contiguous; one per lead
  observe::image::ColorMap colors = observe::image::ColorMap::Viridis;
  // The panel whose range it is drawn on: itself, or one before it whose colours are to compare.
  size_t range_of = 0;
};

struct FieldMovie {
  std::vector<std::string> titles{};  // above all panels, one per lead
  std::vector<AnimatedPanel> panels{};
  std::optional<observe::image::MapFrame> map{};
};

void write_movie(const FieldMovie& movie, const std::filesystem::path& path, observe::image::AnimationFormat format);

// Where the fields of this data set lie, for maps; nothing for boxes and planes. Rows and columns that the files do not place are
// the tutorials': from pole to pole, and from 0 eastwards.
std::optional<observe::image::MapFrame> map_of(const data::SampleSpec& spec);

}  // namespace welkin::train
