// SPDX-License-Identifier: Apache-2.0
// A figure of docs/results/scaling.md: the fraction of the halo exchange that is hidden behind the interior of a block.
#pragma once

#include <cstdint>

#include "bench/scaling/link_figure.h"
#include "model/registry.h"
#include "parallel/comm/world.h"

namespace welkin::bench {

struct SpatialProblem {
  int64_t edge = 64;  // of the box, which is split along its depth
  int64_t width = 16, scales = 4;
  double link_share = 0.1;  // link time of a step's halos, over the computation time of a step
};

// All ranks of `world` share one box of a U-Net. Their connection uses `link`.
LinkFigure measure_spatial(const SpatialProblem& problem, const model::ModelEntry& unet, parallel::World& world,
                           parallel::EmulatedLink& link);

}  // namespace welkin::bench
