// SPDX-License-Identifier: Apache-2.0
// A figure of docs/results/scaling.md: what a link adds to a step under tensor parallelism, whose calls are in part hidden behind
// matmuls.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "bench/scaling/bench_vit.h"
#include "model/registry.h"
#include "parallel/comm/link.h"
#include "parallel/comm/world.h"

namespace welkin::bench {

struct TensorParallelProblem {
  BenchVit vit;  // samples: in the hands of all ranks
  bool sequence_parallel = false;
  double link_share = 0.5;  // of the time of a step's computation: what the link needs for a step's bytes
};

// Of forward and backward pass; medians over repetitions of the slowest rank.
struct TensorParallelResult {
  int64_t bytes_per_step = 0;  // of this rank's calls, a gather's those of the whole
  double link_s = 0;           // for them, one after the other
  double compute_s = 0;        // a step whose calls send nothing
  double gloo_step_s = 0;      // by Gloo alone
  double step_s = 0;           // over the link
  // What the link adds to Gloo's own time, over its time. Below 1 as far as calls are hidden: behind matmuls, or behind Gloo.
  double added_fraction() const { return (step_s - gloo_step_s) / link_s; }
};

// All ranks of `world` share one ViT. `link` is that of their connection.
TensorParallelResult measure_tensor_parallel(const TensorParallelProblem& problem, const model::ModelEntry& vit,
                                             parallel::World& world, parallel::EmulatedLink& link);

nlohmann::ordered_json tensor_parallel_json(const TensorParallelResult& figure);

}  // namespace welkin::bench
