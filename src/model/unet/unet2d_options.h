// SPDX-License-Identifier: Apache-2.0
// The numbers that fix a U-Net of fields; torch-free, shared by the model and its cost.
#pragma once

#include <cstdint>
#include <vector>

#include "model/base/residual.h"

namespace welkin::model {

struct Unet2dOptions {
  int64_t in_channels = 20;
  int64_t out_channels = 20;
  int64_t width = 64;  // channels of the finest scale
  int64_t scales = 4;  // halvings
  bool residual = false;
  int64_t newest_input_channel = 0;
  std::vector<ResidualRun> residual_runs{};  // base/residual.h

  int64_t channels(int64_t halvings) const { return width << halvings; }
};

}  // namespace welkin::model
