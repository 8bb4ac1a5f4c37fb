// SPDX-License-Identifier: Apache-2.0
#include "plan/model_steps.h"

#include <algorithm>
#include <vector>

#include "config/schema/key.h"

namespace welkin::plan {
namespace {

bool only_last(const config::RunConfig& config) { return config.loss.multistep_gradient == config::MultistepGradient::Last; }

// Passes of a model step whose input has a gradient: one forward, and twice as much backward. The first step's input has none.
constexpr double kPassesOfStep = 3;

// Steps without a gradient need only the forward pass.
double work_of(const config::RunConfig& config, double steps) {
  return only_last(config) ? steps - 1 + kPassesOfStep : kPassesOfStep * steps;
}

}  // namespace

int64_t model_steps(const config::RunConfig& config) {
  return config::has_effect(config::key_at("loss.multistep"), config) ? config.loss.multistep.most() : 1;
}

int64_t ensemble_members(const config::RunConfig& config) {
  return config::has_effect(config::key_at("loss.ensemble_members"), config) ? config.loss.ensemble_members : 1;
}

StagePasses stage_passes(const config::RunConfig& config) {
  if (config.parallel.pipeline_parallel == 1) return {};
  const auto steps = static_cast<double>(model_steps(config));
  return {.forward = steps, .backward = only_last(config) ? 1 : steps};
}

RunFacts of_all_steps(const config::RunConfig& config, RunFacts facts) {
  const int64_t steps = model_steps(config);
  const auto passes = static_cast<double>(steps), members = static_cast<double>(ensemble_members(config));
  const double with_graph = only_last(config) ? 1 : passes, forward = facts.cost.forward_flops;
  facts.cost.train_flops += (with_graph - 1) * kPassesOfStep * forward + (passes - with_graph) * forward;
  facts.cost.train_flops *= members;
  facts.sample_values += (steps - 1) * facts.step_values;
  if (!facts.memory) return facts;
  model::MemoryCost& memory = *facts.memory;
  const double kept_passes = members * with_graph;
  memory.recompute_flops *= kept_passes;
  const bool runs_again = steps > 1 && config.loss.multistep_recompute;
  if (runs_again) memory.recompute_flops += kept_passes * forward;
  if (config.parallel.pipeline_parallel > 1) {  // the schedule determines the number of passes held
    if (!runs_again) memory.kept = members * memory.kept;
    for (StageFacts& stage : facts.stages) stage.inputs_held *= members;
    return facts;
  }
  if (runs_again) {
    memory.kept.ends += kept_passes * static_cast<double>(facts.input_values);
  } else {
    memory.kept = kept_passes * memory.kept;
  }
  return facts;
}

double run_share(const config::RunConfig& config) {
  const config::LossConfig& loss = config.loss;
  const bool by_iteration = !loss.multistep_iters.empty();
  const std::vector<int64_t>& lengths = by_iteration ? loss.multistep_iters : loss.multistep_epochs;
  const int64_t end = by_iteration ? config.loop.num_iters : config.loop.num_epochs;
  if (lengths.empty() || end == 0 || model_steps(config) == 1) return 1;
  double work = 0;
  int64_t begin = 0;
  for (size_t part = 0; part < loss.multistep.numbers.size() && begin < end; ++part) {
    const int64_t length = part < lengths.size() ? std::min(lengths[part], end - begin) : end - begin;
    work += static_cast<double>(length) * work_of(config, static_cast<double>(loss.multistep.numbers[part]));
    begin += length;
  }
  return work / (static_cast<double>(end) * work_of(config, static_cast<double>(loss.multistep.most())));
}

}  // namespace welkin::plan
