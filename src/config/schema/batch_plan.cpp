// SPDX-License-Identifier: Apache-2.0
#include "config/schema/batch_plan.h"

#include <algorithm>

namespace welkin::config {
namespace {

BatchPlan divided(const RunConfig& config, int64_t local) {
  BatchPlan plan{.global = config.loop.global_batch_size, .local = local};
  if (config.parallel.rank_invariant) plan.units = kInvariantUnits;
  const MicroBatchSize& size = config.loop.micro_batch_size;
  const int64_t wanted = plan.units > 0 ? plan.global / plan.units : size.is_auto ? 1 : size.samples;
  plan.micro = wanted > 0 ? std::min(wanted, plan.local) : plan.local;
  return plan;
}

}  // namespace

BatchPlan batch_plan(const RunConfig& config, int64_t replicas) {
  return divided(config, std::max<int64_t>(1, (config.loop.global_batch_size + replicas - 1) / replicas));
}

BatchPlan batch_plan(const RunConfig& config) {
  return divided(config, std::max<int64_t>(1, config.loop.local_batch_size.value_or(config.loop.global_batch_size)));
}

}  // namespace welkin::config
