// SPDX-License-Identifier: Apache-2.0
#include "plan/step_time.h"

#include <algorithm>
#include <map>
#include <string>

namespace welkin::plan {
namespace {

// Of a pass forward and backward the backward pass takes two thirds; half of that makes the weights' gradients.
constexpr double kBackward = 2.0 / 3.0;

// What a host needs to begin a layer, once forward and twice backward: small forward passes take no less.
constexpr double kBeginLayer = 3 * 10e-6;

// The part of the computation that hides calls beside it: tp sums the input's gradient beside one matmul's weight gradient; a
// ring of keys and halos of blocks go beside most of the layer that needs them.
double hidden_beside(const std::string& group) { return group == "tp" ? kBackward / 4 : 0.5; }

}  // namespace

double Machine::seconds(CollectiveKind kind, int64_t ranks, bool leaves_node, double bytes) const {
  if (ranks < 2) return 0;
  const double bandwidth = leaves_node ? network_bytes_per_second : node_bytes_per_second;
  return ring_messages(kind, ranks) * latency_s + bus_factor(kind, ranks) * bytes / bandwidth;
}

StepTime step_time(const RunEstimate& run, const Machine& machine) {
  const double ranks = static_cast<double>(run.world_size);
  StepTime time{.compute = (run.step_flops + run.recompute_flops) / (machine.flops_per_second * ranks)};
  const double layers = static_cast<double>(run.cost.layers.size()) / static_cast<double>(run.pipeline_parallel);
  const double begins = kBeginLayer * layers * static_cast<double>(run.micro_batches * run.model_steps);
  time.compute = std::max(time.compute, begins);
  time.idle = time.compute * run.idle / (1 - run.idle);
  std::map<std::string, double> beside;
  for (const CollectiveTraffic& each : run.collectives) {
    if (each.calls == 0) continue;
    const double seconds = each.calls * machine.seconds(each.kind, each.ranks, each.leaves_node, each.bytes / each.calls);
    (each.is_beside ? beside[each.group] : time.model) += seconds;
  }
  for (const auto& [group, seconds] : beside) time.model += std::max(0.0, seconds - hidden_beside(group) * time.compute);
  // Gradients leave in buckets during the last backward pass, the last bucket behind it. Sharded weights come and go with every
  // pass, beside all of the computation.
  const double bandwidth = run.exchange_leaves_node ? machine.network_bytes_per_second : machine.node_bytes_per_second;
  if (run.reduced_bytes > 0) {  // else there may be no link
    const double exchange = run.reduced_bytes / bandwidth;
    const double of_last_pass = run.exchanges_each_pass ? 1 : kBackward / static_cast<double>(run.micro_batches);
    time.gradients = std::max(exchange - of_last_pass * time.compute, std::min(exchange, run.bucket_bytes / bandwidth));
  }
  if (run.pipeline_parallel == 1) return time;
  // A message is under way while the next micro-batch is computed; the first and the last ones of a step have nothing beside
  // them.
  const double message = machine.seconds(CollectiveKind::SendReceive, 2, run.stages_leave_node, run.message_bytes);
  time.stages = 2 * static_cast<double>(run.pipeline_parallel - 1) * message;
  return time;
}

}  // namespace welkin::plan
