// SPDX-License-Identifier: Apache-2.0
#include "train/evaluate/sample_picture.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "data/sample/sequences.h"
#include "data/sample/state_transform.h"
#include "observe/image/png.h"
#include "train/evaluate/persistence.h"
#include "train/evaluate/prediction_file.h"
#include "train/run/field_picture.h"

namespace welkin::train {

std::vector<int64_t> picture_channels(const data::SampleSpec& spec, const std::vector<std::string>& names) {
  if (names.empty()) return {0};
  std::vector<int64_t> indices;
  for (const std::string& name : names) {
    const auto found = std::find(spec.target.channels.begin(), spec.target.channels.end(), name);
    if (found == spec.target.channels.end()) {
      throw ConfigError("predict", cat("there is no such channel: channel=", name),
                        cat("Choose one of: ", join(spec.target.channels, ", ")));
    }
    indices.push_back(found - spec.target.channels.begin());
  }
  return indices;
}

std::string name_in_file(const std::string& channel) {
  std::string name = channel;
  std::ranges::replace(name, '/', '_');
  return name;
}

std::string with_unit(const data::ArraySpec& array, const ChannelUnits& shown, int64_t channel) {
  const auto c = static_cast<size_t>(channel);
  return shown.units[c].empty() ? array.channels[c] : cat(array.channels[c], " [", shown.units[c], "]");
}

void draw_sample(const data::SampleSpec& spec, const SampleFields& fields, int64_t channel, const PictureTitle& title,
                 const std::filesystem::path& path) {
  const ChannelUnits before = input_units(spec), after = target_units(spec);
  const auto plane = [](const at::Tensor& batch, const ChannelUnits& shown, int64_t at_channel) {
    return plane_of(rescaled(batch, shown.offset, shown.scale).select(0, 0), at_channel);
  };
  ForecastPicture picture;
  picture.title = cat(title.before, ", ", with_unit(spec.target, after, channel), title.after);
  const int64_t earlier = has_persistence(spec) ? data::earlier_channels(spec)[static_cast<size_t>(channel)] : -1;
  picture.input_is_earlier_target = earlier >= 0 && data::difference_of_transforms(spec, channel, earlier).empty();
  const int64_t shown = std::max<int64_t>(earlier, 0);
  if (!picture.input_is_earlier_target) picture.input_title = cat("input: ", with_unit(spec.input, before, shown));
  picture.input = plane(fields.input, before, shown);
  picture.target = plane(fields.target, after, channel);
  picture.prediction = plane(fields.prediction, after, channel);
  picture.map = map_of(spec);
  observe::image::write_png(path, draw_forecast(picture));
}

}  // namespace welkin::train
