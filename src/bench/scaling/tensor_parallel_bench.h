// SPDX-License-Identifier: Apache-2.0
// A figure of docs/results/scaling.md: the time that a link adds to a step under tensor parallelism, some of whose calls are
// hidden behind matmuls.
#pragma once

#include <cstdint>

#include "bench/scaling/bench_vit.h"
#include "bench/scaling/link_figure.h"
#include "model/registry.h"
#include "parallel/comm/world.h"

namespace welkin::bench {

struct TensorParallelProblem {
  BenchVit vit;  // samples: of all ranks together
  bool sequence_parallel = false;
  double link_share = 0.5;  // link time of a step's bytes, over the computation time of a step
};

// All ranks of `world` share one ViT. Their connection uses `link`.
LinkFigure measure_tensor_parallel(const TensorParallelProblem& problem, const model::ModelEntry& vit, parallel::World& world,
                                   parallel::EmulatedLink& link);

}  // namespace welkin::bench
