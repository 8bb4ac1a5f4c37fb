// SPDX-License-Identifier: Apache-2.0
// The numbers that fix a 3-D U-Net; torch-free, shared by the model and its cost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace welkin::model {

struct Unet3dOptions {
  int64_t in_channels = 4;
  int64_t out_channels = 5;
  int64_t width = 64;  // channels of the first scale; they double up to 8 * width
  int64_t scales = 6;  // halvings of the box: 2..6; every edge is divisible by 2^scales
  double conv_deviation = 0.02;
  std::optional<double> conv_bias = 0.0;

  // Channels after halving number `scale` (1 is the first).
  int64_t channels(int64_t scale) const { return width << std::min<int64_t>(scale - 1, 3); }
  // Input channels of the doubling of `scale`: all but the deepest also take the skip's.
  int64_t up_in_channels(int64_t scale) const { return scale == scales ? channels(scale) : 2 * channels(scale); }
};

}  // namespace welkin::model
