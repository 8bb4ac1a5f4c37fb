// SPDX-License-Identifier: Apache-2.0
// The model of the figures with a measurement of their own: a small ViT on fields of ones.
#pragma once

#include <cstdint>

#include "config/schema/run_config.h"
#include "model/registry.h"

namespace welkin::bench {

struct BenchVit {
  int64_t width = 384, depth = 6;  // 10.7 million parameters
  int64_t samples = 4;             // 288 tokens each

  config::ModelConfig config() const {
    config::ModelConfig config;
    config.embed_dim = width;
    config.depth = depth;
    config.num_heads = 8;
    config.patch_size = 8;
    config.mlp_ratio = 4;
    config.dropout = 0;
    return config;
  }
  static model::ModelShape shape() { return {.in_channels = 8, .out_channels = 8, .grid = {96, 192}}; }
};

}  // namespace welkin::bench
