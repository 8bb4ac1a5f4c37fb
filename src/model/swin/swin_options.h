// SPDX-License-Identifier: Apache-2.0
// The numbers that fix a Swin transformer; torch-free, shared by the model and its cost.
#pragma once

#include <cstdint>
#include <vector>

#include "model/base/residual.h"

namespace welkin::model {

struct SwinOptions {
  int64_t height = 360;  // grid points, divisible by patch
  int64_t width = 720;
  int64_t patch = 4;
  int64_t in_channels = 20;
  int64_t out_channels = 20;
  int64_t embed_dim = 384;  // divisible by num_heads
  int64_t depth = 12;
  int64_t num_heads = 8;
  int64_t mlp_width = 1536;
  int64_t window_rows = 6;  // patches of a window; they divide those of the field
  int64_t window_columns = 12;
  double dropout = 0.0;  // in [0, 1): dropout, and drop-path rising linearly from 0 to it over the depth
  bool residual = false;
  int64_t newest_input_channel = 0;
  std::vector<ResidualRun> residual_runs{};  // base/residual.h

  int64_t rows() const { return height / patch; }
  int64_t columns() const { return width / patch; }
  int64_t num_tokens() const { return rows() * columns(); }
  int64_t window_tokens() const { return window_rows * window_columns; }
  int64_t window_bands() const { return rows() / window_rows; }  // windows from pole to pole
  // Rows of the bias table: for every pair of rows of a window, every distance of columns.
  int64_t bias_rows() const { return window_rows * window_rows * (2 * window_columns - 1); }
};

}  // namespace welkin::model
