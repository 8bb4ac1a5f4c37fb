// SPDX-License-Identifier: Apache-2.0
#include "plan/collective_traffic.h"

#include <algorithm>

#include "config/schema/batch_plan.h"
#include "plan/model_steps.h"

namespace welkin::plan {

// Every micro-batch makes all calls; a pipeline's rank those of its part of the model.
std::vector<CollectiveTraffic> collectives_of(const config::RunConfig& config, const RunFacts& facts, const StageFacts& stage) {
  const config::BatchPlan batch = config::batch_plan(config);
  const double steps = static_cast<double>(model_steps(config)), members = static_cast<double>(ensemble_members(config));
  std::vector<CollectiveTraffic> all;
  for (const CollectiveFacts& each : facts.collectives) {
    const double bytes = each.is_wide ? kWideBytes : narrow_bytes(config);
    all.push_back({.group = each.group,
                   .kind = each.kind,
                   .ranks = each.ranks,
                   .leaves_node = each.leaves_node,
                   .calls = each.calls * static_cast<double>(batch.micros()) * steps * stage.flops,
                   .bytes = each.values * bytes * static_cast<double>(batch.local) * steps * members * stage.flops,
                   .is_beside = each.is_beside});
  }
  // Ranks of tp have whole parameters besides their own parts: these gradients are summed once, in one message.
  const int64_t tp = config.parallel.tensor_parallel;
  const auto whole = static_cast<double>(facts.cost.parameters - (facts.memory ? facts.memory->split_parameters : 0));
  const bool leaves_node =
      std::ranges::any_of(facts.collectives, [](const CollectiveFacts& each) { return each.group == "tp" && each.leaves_node; });
  if (tp > 1)
    all.push_back({.group = "tp",
                   .kind = CollectiveKind::AllReduce,
                   .ranks = tp,
                   .leaves_node = leaves_node,
                   .calls = 1,
                   .bytes = kWideBytes * whole * stage.parameters});
  return all;
}

}  // namespace welkin::plan
