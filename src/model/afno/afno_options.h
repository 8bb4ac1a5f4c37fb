// SPDX-License-Identifier: Apache-2.0
// The numbers that fix an AFNO; torch-free, shared by the model and its cost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/base/residual.h"

namespace welkin::model {

struct AfnoOptions {
  int64_t height = 360;  // grid points, divisible by patch
  int64_t width = 720;
  int64_t patch = 8;
  int64_t in_channels = 20;
  int64_t out_channels = 20;
  int64_t embed_dim = 768;  // divisible by num_blocks
  int64_t depth = 12;
  int64_t num_blocks = 8;  // blocks of channels; the filter mixes channels within a block
  int64_t mlp_width = 3072;
  double sparsity_threshold = 0.01;
  double dropout = 0.0;  // in [0, 1): dropout, and drop-path rising linearly from 0 to it over the depth
  bool residual = false;
  int64_t newest_input_channel = 0;
  std::vector<ResidualRun> residual_runs{};  // base/residual.h

  int64_t rows() const { return height / patch; }
  int64_t columns() const { return width / patch; }
  int64_t num_tokens() const { return rows() * columns(); }
  // Wavenumbers along longitude that the filter keeps: as many as along latitude, as in FourCastNet's code.
  int64_t kept_columns() const { return std::min(columns() / 2 + 1, rows() / 2 + 1); }
};

}  // namespace welkin::model
