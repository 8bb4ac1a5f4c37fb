// SPDX-License-Identifier: Apache-2.0
// The numbers that fix an SFNO; torch-free, shared by the model and its cost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "config/schema/choices.h"
#include "model/base/residual.h"

namespace welkin::model {

struct SfnoOptions {
  int64_t height = 360;  // grid points from north to south
  int64_t width = 720;
  int64_t in_channels = 20;
  int64_t out_channels = 20;
  int64_t embed_dim = 384;
  int64_t depth = 8;
  int64_t scale_factor = 3;  // of the inner blocks' grid
  int64_t mlp_width = 768;
  config::GridType grid = config::GridType::Equiangular;  // of the field; the inner blocks use a Gaussian grid
  double dropout = 0.0;                                   // in [0, 1): drop-path, rising linearly from 0 to it over the depth
  bool residual = false;
  int64_t newest_input_channel = 0;
  std::vector<ResidualRun> residual_runs{};  // base/residual.h

  int64_t inner_height() const { return height / scale_factor; }
  int64_t inner_width() const { return width / scale_factor; }
  int64_t degrees() const { return inner_height(); }
  // The number of orders: higher ones have no matching degree.
  int64_t orders() const { return std::min(degrees(), inner_width() / 2 + 1); }
};

}  // namespace welkin::model
