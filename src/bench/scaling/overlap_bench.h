// SPDX-License-Identifier: Apache-2.0
// Two figures of docs/results/scaling.md: the fraction of the gradient exchange, or of sharded ranks' messages, that is hidden
// behind the computation over an emulated link; and the cost of the collectives' adapter over c10d alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/scaling/bench_vit.h"
#include "model/registry.h"
#include "parallel/comm/group.h"
#include "parallel/comm/link.h"

namespace welkin::bench {

struct OverlapResult {
  int64_t gradient_bytes = 0;
  double gloo_s = 0;       // the gradients in one message, over Gloo alone
  double link_s = 0;       // the gradients over the link
  double exposed_s = 0;    // from the last gradient of all ranks to the end of the exchange over the link: nothing else runs
  double compute_s = 0;    // a step without exchange; like the others, the median over repetitions of the slowest rank
  double step_s = 0;       // with exchange, over the link
  double gloo_step_s = 0;  // with exchange, over Gloo alone, which uses the same cores
  double added_s = 0;      // that a step waits longer over the link than over Gloo (bench_timing.h)
  // Over the link's time: 0 if it is all hidden.
  double added_fraction() const { return link_s > 0 ? added_s / link_s : 0; }
  double hidden_fraction() const { return link_s > 0 ? 1 - std::min(exposed_s, link_s) / link_s : 0; }
};

struct OverlapProblem {
  BenchVit vit;  // samples: per rank
  int64_t bucket_cap_mb = 4;
  double slower = 5;  // factor by which the link is slower than Gloo
  config::ShardStage shard = config::ShardStage::None;
};

// The ranks of `replicas` train a ViT, each on its own data. Their connection uses `link`.
OverlapResult measure_overlap(const OverlapProblem& problem, const model::ModelEntry& vit, const parallel::Group& replicas,
                              parallel::EmulatedLink& link);

// The same for problem.shard. `link_s` is the time of a step's bytes on the link, `exposed_s` the excess over a step whose
// groups send nothing; it includes Gloo's own work on the cores.
OverlapResult measure_sharded_overlap(const OverlapProblem& problem, const model::ModelEntry& vit, const parallel::Group& shards,
                                      parallel::EmulatedLink& link);

// Seconds that collectives.h adds to a sum of so many bytes by c10d, over the seconds of c10d alone.
double measure_adapter(const parallel::Group& group, int64_t bytes);

nlohmann::ordered_json overlap_json(const OverlapResult& figure);

}  // namespace welkin::bench
