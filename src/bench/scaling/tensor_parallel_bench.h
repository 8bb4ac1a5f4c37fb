// SPDX-License-Identifier: Apache-2.0
// A figure of docs/results/scaling.md: what a link adds to a step under tensor parallelism, whose calls are in part hidden behind
// matmuls.
#pragma once

#include <cstdint>

#include "bench/scaling/bench_vit.h"
#include "bench/scaling/link_figure.h"
#include "model/registry.h"
#include "parallel/comm/world.h"

namespace welkin::bench {

struct TensorParallelProblem {
  BenchVit vit;  // samples: in the hands of all ranks
  bool sequence_parallel = false;
  double link_share = 0.5;  // of the time of a step's computation: what the link needs for a step's bytes
};

// All ranks of `world` share one ViT. `link` is that of their connection.
LinkFigure measure_tensor_parallel(const TensorParallelProblem& problem, const model::ModelEntry& vit, parallel::World& world,
                                   parallel::EmulatedLink& link);

}  // namespace welkin::bench
