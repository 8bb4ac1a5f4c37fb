// SPDX-License-Identifier: Apache-2.0
#include "train/run/field_picture.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>

#include <limits>

#include "observe/image/panels.h"

namespace welkin::train {
namespace {

using observe::image::ColorMap;
using observe::image::Panel;

Panel panel_of(std::string title, const at::Tensor& plane, ColorMap colors = ColorMap::Turbo) {
  return {.title = std::move(title),
          .values = {plane.const_data_ptr<float>(), static_cast<size_t>(plane.numel())},
          .rows = static_cast<int>(plane.size(0)),
          .columns = static_cast<int>(plane.size(1)),
          .colors = colors,
          .low = {},
          .high = {}};
}

// Uses the range of the target, so that colours compare.
Panel on_range_of(const at::Tensor& target, Panel panel) {
  const at::Tensor values = target.masked_select(at::isfinite(target));
  if (values.numel() == 0) return panel;
  panel.low = values.min().item<double>();
  panel.high = values.max().item<double>();
  return panel;
}

// The plane with NaN, which is drawn grey, at points where the target has no value.
at::Tensor with_holes_of(const at::Tensor& target, const at::Tensor& plane) {
  return plane.masked_fill(at::isnan(target), std::numeric_limits<double>::quiet_NaN()).contiguous();
}

}  // namespace

at::Tensor plane_of(const at::Tensor& sample, int64_t channel) {
  at::Tensor plane = sample.detach().select(0, channel);
  if (plane.dim() == 3) plane = plane.select(0, plane.size(0) / 2);
  return plane.to(at::TensorOptions(at::kCPU).dtype(at::kFloat), /*non_blocking=*/false, /*copy=*/true).contiguous();
}

observe::image::Raster draw_forecast_pair(const ForecastPair& pair) {
  const at::Tensor prediction = with_holes_of(pair.target, pair.prediction);
  return observe::image::draw_panels({.panels = {panel_of("ERA5 target", pair.target), panel_of("ViT prediction", prediction)}});
}

observe::image::Raster draw_forecast(const ForecastPicture& picture) {
  const at::Tensor earlier = picture.input_is_earlier_target ? with_holes_of(picture.target, picture.input) : picture.input;
  const at::Tensor prediction = with_holes_of(picture.target, picture.prediction);
  Panel input = panel_of(picture.input_title, earlier, ColorMap::Viridis);
  if (picture.input_is_earlier_target) input = on_range_of(picture.target, std::move(input));
  const at::Tensor difference = (prediction - picture.target).contiguous();
  observe::image::PanelFigure figure{
      .panels_per_row = 2,
      .title = picture.title,
      .panels = {std::move(input), on_range_of(picture.target, panel_of("target", picture.target, ColorMap::Viridis)),
                 on_range_of(picture.target, panel_of("prediction", prediction, ColorMap::Viridis)),
                 panel_of("prediction - target", difference, ColorMap::Diverging)}};
  for (Panel& panel : figure.panels) panel.map = picture.map;
  return observe::image::draw_panels(figure);
}

}  // namespace welkin::train
