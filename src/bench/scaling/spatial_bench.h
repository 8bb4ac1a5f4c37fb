// SPDX-License-Identifier: Apache-2.0
// A figure of docs/results/scaling.md: how much of a halo's way is hidden behind the interior of a block.
#pragma once

#include <cstdint>

#include "bench/scaling/link_figure.h"
#include "model/registry.h"
#include "parallel/comm/world.h"

namespace welkin::bench {

struct SpatialProblem {
  int64_t edge = 64;  // of the box, which is cut along its depth
  int64_t width = 16, scales = 4;
  double link_share = 0.1;  // of the time of a step's computation: what the link needs for a step's halos
};

// All ranks of `world` share one box of a U-Net. `link` is that of their connection.
LinkFigure measure_spatial(const SpatialProblem& problem, const model::ModelEntry& unet, parallel::World& world,
                           parallel::EmulatedLink& link);

}  // namespace welkin::bench
