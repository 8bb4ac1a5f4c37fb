// SPDX-License-Identifier: Apache-2.0
// Two figures of docs/results/scaling.md: how much of the gradient exchange, or of what sharded ranks send, is hidden behind the
// computation over an emulated link, and what the collectives' adapter costs over c10d alone.
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
  double gloo_s = 0;       // of the gradients in one message, by Gloo alone
  double link_s = 0;       // of the gradients over the link
  double exposed_s = 0;    // from the last gradient of all ranks to the end of the exchange over the link: nothing else runs
  double compute_s = 0;    // a step without exchange; like the others, the median over repetitions of the slowest rank
  double step_s = 0;       // with it, over the link
  double gloo_step_s = 0;  // with it, by Gloo alone, whose work takes the same cores
  // What the link adds to the step over Gloo, which copies and packs as much, over its time: 0 where all of it is hidden.
  double added_fraction() const { return link_s > 0 ? (step_s - gloo_step_s) / link_s : 0; }
  double hidden_fraction() const { return link_s > 0 ? 1 - std::min(exposed_s, link_s) / link_s : 0; }
};

struct OverlapProblem {
  BenchVit vit;  // samples: of a rank
  int64_t bucket_cap_mb = 4;
  double slower = 5;  // the link than Gloo
  config::ShardStage shard = config::ShardStage::None;
};

// The ranks of `replicas` train a ViT on data of their own. `link` is that of their connection.
OverlapResult measure_overlap(const OverlapProblem& problem, const model::ModelEntry& vit, const parallel::Group& replicas,
                              parallel::EmulatedLink& link);

// The same for problem.shard. `link_s` is what the link has carried in a step, `exposed_s` what a step takes longer than one
// whose groups send nothing: Gloo's own work on the cores is in it.
OverlapResult measure_sharded_overlap(const OverlapProblem& problem, const model::ModelEntry& vit, const parallel::Group& shards,
                                      parallel::EmulatedLink& link);

// Seconds of a sum of so many bytes by c10d alone and what collectives.h adds, over the former.
double measure_adapter(const parallel::Group& group, int64_t bytes);

nlohmann::ordered_json overlap_json(const OverlapResult& figure);

}  // namespace welkin::bench
