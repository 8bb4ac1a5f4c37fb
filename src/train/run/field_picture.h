// SPDX-License-Identifier: Apache-2.0
// Pictures of samples: the tutorials' pair for TensorBoard, and the four panels of `welkin predict`. Where the target has no
// value (NaN), all panels are grey.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "observe/image/map_frame.h"
#include "observe/image/raster.h"

namespace welkin::train {

// One channel of a sample's target and of its prediction, (H, W) float32 on the CPU, contiguous.
struct ForecastPair {
  at::Tensor target, prediction;
};

// (C, H, W) -> (H, W); (C, D, H, W) -> the middle slice. Float32 on the CPU, contiguous, a copy.
at::Tensor plane_of(const at::Tensor& sample, int64_t channel);

// 1200 x 600, each panel autoscaled, row 0 on top: "ERA5 target" and "ViT prediction".
observe::image::Raster draw_forecast_pair(const ForecastPair& pair);

struct ForecastPicture {
  std::string title;
  std::string input_title = "input";
  bool input_is_earlier_target = true;  // the same channel at an earlier time: drawn on the target's scale, else on its own
  at::Tensor input;
  at::Tensor target, prediction;
  std::optional<observe::image::MapFrame> map{};  // for fields on the sphere
};

// Draws input, target, prediction and prediction - target; target and prediction on one scale.
observe::image::Raster draw_forecast(const ForecastPicture& picture);

}  // namespace welkin::train
