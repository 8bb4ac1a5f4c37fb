// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <utility>

#include "config/validate/validate.h"
#include "core/text.h"

namespace welkin::config {
namespace {

void validate_spikes(Draft& draft) {
  constexpr std::string_view kOnSpike = "health.on_spike", kFactor = "health.spike_lr_factor", kSteps = "health.spike_lr_steps";
  const HealthConfig& health = draft.config.health;
  const auto refuse = [&](std::string_view path, std::string_view what, std::string_view other, std::string_view remedy) {
    draft.problems.add(draft.place(path), cat(what, ": ", draft.show(path), ", ", draft.show(other)), std::string(remedy));
  };
  if (health.on_spike != SpikeAction::Off && draft.config.backend.cuda_graph) {
    refuse(kOnSpike, "a recorded step does not look for spikes", "backend.cuda_graph", "Leave one of them out");
  }
  if (health.on_spike == SpikeAction::Rollback && !draft.config.backend.offload.empty()) {
    refuse(kOnSpike, "a copy in memory cannot be kept of what is offloaded", "backend.offload", "Take on_spike: skip");
  }
  if (health.spike_lr_factor < 1 && health.spike_lr_steps == 0) {
    refuse(kFactor, "the rate is lowered for no update", kSteps, "Say for how many: spike_lr_steps: 50");
  }
}

void validate_recheck(Draft& draft) {
  constexpr std::string_view kPath = "health.recheck_interval";
  if (draft.config.health.recheck_interval == 0) return;
  const ParallelConfig& parallel = draft.config.parallel;
  for (const auto& [path, is_on] :
       {std::pair<std::string_view, bool>{"parallel.shard", parallel.shard != ShardStage::None},
        std::pair<std::string_view, bool>{"parallel.pipeline_parallel", parallel.pipeline_parallel > 1},
        // Ranks that share a model pass values on while they compute: a wrong rank makes all of them disagree with
        // themselves.
        std::pair<std::string_view, bool>{"parallel.tensor_parallel", parallel.tensor_parallel > 1},
        std::pair<std::string_view, bool>{"parallel.context_parallel", parallel.context_parallel > 1},
        std::pair<std::string_view, bool>{"parallel.spatial", parallel.spatial.size() > 1},
        std::pair<std::string_view, bool>{"backend.cuda_graph", draft.config.backend.cuda_graph},
        std::pair<std::string_view, bool>{"backend.offload", !draft.config.backend.offload.empty()}}) {
    if (!is_on) continue;
    draft.problems.add(draft.place(kPath),
                       cat("gradients are not computed twice with this: ", draft.show(kPath), ", ", draft.show(path)),
                       "Leave one of them out");
  }
}

void validate_trackers(Draft& draft) {
  for (const std::string& name : draft.config.output.track) {
    if (name == "mlflow" || name == "wandb") continue;
    draft.problems.add(draft.place("output.track"), cat("unknown tracker: ", draft.show("output.track"), ", tracker=", name),
                       "Choose mlflow, wandb or both");
  }
}

}  // namespace

void validate_health(Draft& draft) {
  validate_trackers(draft);
  validate_spikes(draft);
  validate_recheck(draft);
}

}  // namespace welkin::config
