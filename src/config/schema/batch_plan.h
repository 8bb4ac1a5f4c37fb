// SPDX-License-Identifier: Apache-2.0
// Divides the samples of an optimizer step among data-parallel ranks, and on a rank among forward passes. The one place for the
// rule of `micro_batch_size`.
#pragma once

#include <cstdint>

#include "config/schema/run_config.h"

namespace welkin::config {

// rank_invariant: gradients are summed over this many parts of a batch, in one order whatever the number of ranks.
inline constexpr int64_t kInvariantUnits = 8;

struct BatchPlan {
  int64_t global = 0;  // samples per optimizer step, over all data-parallel ranks
  int64_t local = 0;   // of one rank; the largest where the ranks do not divide `global`
  int64_t micro = 0;   // of one forward pass: at most `local`, at least 1; 1 where `auto` has not chosen yet
  int64_t units = 0;   // kInvariantUnits under rank_invariant, where a forward pass is one of them; else 0

  int64_t micros() const { return (local + micro - 1) / micro; }  // micro-batches of a rank in a step, each a forward pass
};

// `replicas`: data-parallel ranks, at least 1.
BatchPlan batch_plan(const RunConfig& config, int64_t replicas);
// The plan for the number of ranks that `config` was resolved for.
BatchPlan batch_plan(const RunConfig& config);

}  // namespace welkin::config
