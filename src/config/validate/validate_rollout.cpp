// SPDX-License-Identifier: Apache-2.0
// Checks of training over several steps of the model, at once or from a replay buffer: the parts of a run, and
// the keys that exclude it.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema/key.h"
#include "config/validate/validate.h"
#include "core/text.h"

namespace welkin::config {
namespace {

constexpr std::string_view kMultistep = "loss.multistep", kEpochs = "loss.multistep_epochs", kIters = "loss.multistep_iters";

// If there are several numbers, all but the last need a length.
void validate_parts(Draft& draft) {
  const LossConfig& loss = draft.config.loss;
  if (!draft.is_sound({kMultistep, kEpochs, kIters})) return;
  if (!loss.multistep_epochs.empty() && !loss.multistep_iters.empty()) {
    draft.problems.add(draft.place(kIters),
                       cat("the parts of the run have two lengths: ", draft.show(kEpochs), ", ", draft.show(kIters)),
                       "Give one of them");
    return;
  }
  const std::string_view path = loss.multistep_iters.empty() ? kEpochs : kIters;
  const auto& lengths = loss.multistep_iters.empty() ? loss.multistep_epochs : loss.multistep_iters;
  if (lengths.size() + 1 == loss.multistep.numbers.size()) return;
  draft.problems.add(draft.place(lengths.empty() ? kMultistep : path),
                     cat("every number of multistep but the last needs the length of its part: ", draft.show(kMultistep), ", ",
                         draft.show(path)),
                     "Write for instance multistep: [1, 2, 4] and multistep_epochs: [10, 5]");
}

// A part that begins after the end of the run would never be trained.
void validate_end(Draft& draft) {
  const LossConfig& loss = draft.config.loss;
  const LoopConfig& loop = draft.config.loop;
  if (!draft.is_sound({kMultistep, kEpochs, kIters, "loop.num_epochs", "loop.num_iters"})) return;
  const auto check = [&](std::string_view path, const std::vector<int64_t>& lengths, std::string_view end_path, int64_t end) {
    if (lengths.empty() || end == 0 || std::accumulate(lengths.begin(), lengths.end(), int64_t{0}) < end) return;
    draft.problems.add(draft.place(path),
                       cat("the last part begins when the run has ended: ", draft.show(path), ", ", draft.show(end_path)),
                       "Shorten the parts, or lengthen the run");
  };
  check(kEpochs, loss.multistep_epochs, "loop.num_epochs", loop.num_epochs);
  check(kIters, loss.multistep_iters, "loop.num_iters", loop.num_iters);
}

// Refuses keys that set their own order of passes through the model.
void validate_company(Draft& draft) {
  const RunConfig& config = draft.config;
  if (!draft.is_sound({kMultistep})) return;
  const bool has_steps = config.loss.multistep.most() > 1;
  const auto has_offload = [&](std::string_view what) {
    return std::ranges::find(config.backend.offload, what) != config.backend.offload.end();
  };
  const auto refuse = [&](std::string_view path, std::string_view other, std::string_view what, std::string_view remedy) {
    draft.problems.add(draft.place(path), cat(what, ": ", draft.show(path), ", ", draft.show(other)), std::string(remedy));
  };
  constexpr std::string_view kOffload = "backend.offload";
  if (has_steps && (has_offload("activations") || has_offload("parameters"))) {
    refuse(kMultistep, kOffload, "what leaves the memory is read back for one step of the model",
           "Leave activations and parameters out: multistep_recompute keeps the activations of one step alone");
  }
  if (config.loss.multistep_recompute && !has_steps) {
    refuse("loss.multistep_recompute", kMultistep, "there is one step of the model, and so nothing to run again",
           "Say activation_checkpointing: blocks instead, or a larger multistep");
  }
  if (config.loss.multistep_gradient == MultistepGradient::Last && !has_steps) {
    refuse("loss.multistep_gradient", kMultistep, "there are no steps before the last one", "Give a larger multistep");
  }
}

// Checks the ensemble: its members must differ, and the loss must be able to score them.
void validate_ensemble(Draft& draft) {
  const RunConfig& config = draft.config;
  constexpr std::string_view kMembers = "loss.ensemble_members";
  if (config.loss.ensemble_members == 1 || !draft.is_sound({kMembers})) return;
  const auto refuse = [&](std::string_view other, std::string_view what, std::string_view remedy) {
    draft.problems.add(draft.place(kMembers), cat(what, ": ", draft.show(kMembers), ", ", draft.show(other)),
                       std::string(remedy));
  };
  if (config.model.dropout == 0 && config.loss.input_noise == 0) {
    refuse("loss.input_noise", "nothing makes the members of the ensemble differ", "Give dropout or input_noise");
  }
  if (config.loss.loss != "mae") {
    refuse("loss.loss", "members are scored by the continuous ranked probability score, which is made of absolute errors",
           "Set loss to mae");
  }
  constexpr std::string_view kTerms = "terms of the loss are those of one prediction";
  if (config.loss.spectral_weight != 0) refuse("loss.spectral_weight", kTerms, "Leave spectral_weight out");
  if (!config.loss.conservation.empty()) refuse("loss.conservation", kTerms, "Leave conservation out");
  const auto& offload = config.backend.offload;
  if (std::ranges::count(offload, "activations") + std::ranges::count(offload, "parameters") > 0) {
    refuse("backend.offload", "what leaves the memory is read back for one pass", "Leave activations and parameters out");
  }
}

// Checks the replay buffer: one step of the model for each step of training, whose prediction is kept.
void validate_replay(Draft& draft) {
  const RunConfig& config = draft.config;
  constexpr std::string_view kReplay = "loss.replay_buffer", kReplaySteps = "loss.replay_steps";
  if (!draft.is_sound({kReplay, kReplaySteps})) return;
  const auto refuse = [&](bool is_wrong, std::string_view other, std::string_view what, std::string_view remedy) {
    if (!is_wrong) return;
    draft.problems.add(draft.place(kReplay), cat(what, ": ", draft.show(kReplay), ", ", draft.show(other)), std::string(remedy));
  };
  const bool is_wanted = config.loss.replay_buffer > 0;
  refuse(!is_wanted && config.loss.replay_steps != LossConfig{}.replay_steps, kReplaySteps, "there is no replay buffer",
         "Give replay_buffer, or leave replay_steps out");
  if (!is_wanted) return;
  refuse(config.loss.multistep.most() > 1, kMultistep, "a replay buffer takes the place of several steps at once",
         "Leave one of them out");
  refuse(!config.data.datasets.empty(), "data.datasets", "samples that are drawn by weight do not follow each other",
         "Train with a replay buffer on one data set");
  refuse(config.backend.cuda_graph, "backend.cuda_graph", "a recorded step does not show its predictions",
         "Leave one of them out");
}

}  // namespace

void validate_rollout(Draft& draft) {
  validate_replay(draft);
  validate_ensemble(draft);
  validate_parts(draft);
  validate_end(draft);
  validate_company(draft);
}

}  // namespace welkin::config
