// SPDX-License-Identifier: Apache-2.0
// The numbers that fix a vision transformer; torch-free, shared by the model and its cost.
#pragma once

#include <cstdint>
#include <vector>

#include "model/base/residual.h"

namespace welkin::model {

struct VitOptions {
  int64_t height = 360;  // grid points, divisible by patch
  int64_t width = 720;
  int64_t patch = 8;
  int64_t in_channels = 20;
  int64_t out_channels = 20;
  int64_t embed_dim = 384;  // divisible by num_heads
  int64_t depth = 12;
  int64_t num_heads = 8;
  int64_t mlp_width = 1536;
  bool joint_qkv = false;
  double dropout = 0.0;  // in [0, 1): dropout, attention dropout, and drop-path rising linearly from 0 to it over the depth
  bool residual = false;
  int64_t newest_input_channel = 0;  // for residual: input channels from here on are added, unless residual_runs says otherwise
  std::vector<ResidualRun> residual_runs{};

  int64_t num_tokens() const { return (height / patch) * (width / patch); }
};

}  // namespace welkin::model
