// SPDX-License-Identifier: Apache-2.0
#include "train/evaluate/field_animation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.h"
#include "observe/image/panels.h"
#include "observe/image/png.h"

namespace welkin::train {
namespace {

using observe::image::ColorMap;
using observe::image::Panel;

std::span<const float> values_of(const at::Tensor& plane) {
  return {plane.const_data_ptr<float>(), static_cast<size_t>(plane.numel())};
}

// The range of the finite values of all leads; nothing where there are none. Symmetric for differences.
std::optional<std::pair<double, double>> movie_range(const AnimatedPanel& panel) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const at::Tensor& plane : panel.planes) {
    for (const float value : values_of(plane)) {
      if (!std::isfinite(value)) continue;
      low = std::min<double>(low, value), high = std::max<double>(high, value);
    }
  }
  if (low > high) return std::nullopt;
  if (panel.colors == ColorMap::Diverging) high = std::max(std::abs(low), std::abs(high)), low = -high;
  return std::pair(low, high);
}

Panel panel_at(const FieldMovie& movie, size_t index, size_t lead) {
  const AnimatedPanel& from = movie.panels[index];
  const at::Tensor& plane = from.planes[lead];
  Panel panel{.title = from.title,
              .values = values_of(plane),
              .rows = static_cast<int>(plane.size(0)),
              .columns = static_cast<int>(plane.size(1)),
              .colors = from.colors,
              .map = movie.map};
  if (const auto range = movie_range(movie.panels[from.range_of])) panel.low = range->first, panel.high = range->second;
  return panel;
}

}  // namespace

void write_movie(const FieldMovie& movie, const std::filesystem::path& path, observe::image::AnimationFormat format) {
  constexpr int kWidthOfPanel = 640, kHeight = 460;
  constexpr double kSecondsOfFrame = 0.25, kLongest = 8;
  WELKIN_CHECK(!movie.panels.empty() && !movie.titles.empty(), "a movie without panels or leads");
  std::vector<std::string> frames;
  for (size_t lead = 0; lead < movie.titles.size(); ++lead) {
    observe::image::PanelFigure figure{.width = kWidthOfPanel * static_cast<int>(movie.panels.size()), .height = kHeight};
    figure.title = movie.titles[lead];
    for (size_t index = 0; index < movie.panels.size(); ++index) figure.panels.push_back(panel_at(movie, index, lead));
    frames.push_back(observe::image::encode_png(observe::image::draw_panels(figure)));
  }
  // A few leads are shown slower: half a second each.
  const double seconds = std::clamp(kLongest / static_cast<double>(frames.size()), kSecondsOfFrame, 2 * kSecondsOfFrame);
  observe::image::write_animation(path, format, frames, seconds);
}

std::optional<observe::image::MapFrame> map_of(const data::SampleSpec& spec) {
  if (spec.geometry != data::Geometry::Sphere || spec.target.shape.size() != 3) return std::nullopt;
  std::vector<double> latitude = spec.latitude, longitude = spec.longitude;
  const auto rows = spec.target.shape[1], columns = spec.target.shape[2];
  for (int64_t row = 0; spec.latitude.empty() && row < rows; ++row)
    latitude.push_back(90 - 180 * static_cast<double>(row) / static_cast<double>(std::max<int64_t>(rows - 1, 1)));
  for (int64_t column = 0; spec.longitude.empty() && column < columns; ++column)
    longitude.push_back(360 * static_cast<double>(column) / static_cast<double>(columns));
  const bool fits = static_cast<int64_t>(latitude.size()) == rows && static_cast<int64_t>(longitude.size()) == columns;
  return fits ? observe::image::map_frame(latitude, longitude) : std::nullopt;
}

}  // namespace welkin::train
