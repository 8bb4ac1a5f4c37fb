// SPDX-License-Identifier: Apache-2.0
#include "train/step/step_graph.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "ops/device/device_ops.h"
#include "parallel/comm/communicator.h"
#include "train/step/model_setup.h"

namespace welkin::train {
namespace {

[[noreturn]] void cannot_record(const std::string& why, const char* remedy) {
  throw ConfigError("cuda_graph", cat("steps cannot be recorded here: cuda_graph=true, ", why), remedy);
}

}  // namespace

void check_cuda_graph(const config::RunConfig& config, c10::Device device) {
  if (!config.backend.cuda_graph) return;
  if (!device.is_cuda()) {
    cannot_record(cat("device=", device.str()),
                  "Run on a GPU (--device cuda), or leave --cuda_graph out: on a CPU it has nothing to save");
  }
  if (ops::device_ops().make_graph_recorder == nullptr) {
    cannot_record("libwelkin_cuda.so=absent", "Build it with ./quickstart.sh --cuda --skip-train, or leave --cuda_graph out");
  }
  if (config.parallel.rank_invariant) {
    cannot_record("rank_invariant=true, which sums the gradients of eighths of the batch on its own", "Leave one of the two out");
  }
}

void check_cuda_graph(const config::RunConfig& config, const parallel::Group& ranks) {
  if (!config.backend.cuda_graph || ranks.size() == 1 || ranks.communicator().can_record()) return;
  cannot_record(cat("ranks share a GPU, and exchange through host memory: ranks=", ranks.size()),
                "Give each rank a GPU of its own, or leave --cuda_graph out");
}

ops::GraphRecorderPtr graph_recorder(const config::RunConfig& config, c10::Device device) {
  if (!config.backend.cuda_graph) return nullptr;
  check_cuda_graph(config, device);
  return ops::device_ops().make_graph_recorder(device);
}

StepPhase StepGraph::begin(const data::Batch& first, int64_t samples, bool is_watched) {
  const StepShape form{.input = first.input.sizes().vec(),
                       .target = first.target.sizes().vec(),
                       .num_micro = first.num_micro,
                       .own_samples = first.step_samples,
                       .samples = samples};
  phase_ = rule_.next(form, is_watched || first.input.size(0) == 0);
  return phase_;
}

void StepGraph::run_micro(const data::Batch& batch, const std::function<void(const data::Batch&)>& work) {
  WELKIN_CHECK(phase_ == StepPhase::Record || phase_ == StepPhase::Replay, "a step that is neither recorded nor replayed");
  const size_t place = place_of(batch);
  {
    const at::NoGradGuard no_grad;
    places_[place].input.copy_(batch.input, /*non_blocking=*/true);
    places_[place].target.copy_(batch.target, /*non_blocking=*/true);
    places_[place].sample.copy_(batch.sample, /*non_blocking=*/true);
  }
  recorder_->replay(recording_of(batch, place, work));
}

size_t StepGraph::place_of(const data::Batch& batch) {
  const auto fits = [&](const data::Batch& place) {
    return place.input.sizes() == batch.input.sizes() && place.target.sizes() == batch.target.sizes() &&
           place.input.scalar_type() == batch.input.scalar_type();
  };
  const auto found = std::find_if(places_.begin(), places_.end(), fits);
  if (found != places_.end()) return static_cast<size_t>(found - places_.begin());
  data::Batch place;
  place.input = at::empty_like(batch.input, batch.input.options(), memory_format(batch.input.dim(), channels_last_));
  place.target = at::empty_like(batch.target);
  place.sample = at::empty_like(batch.sample);
  places_.push_back(std::move(place));
  return places_.size() - 1;
}

size_t StepGraph::recording_of(const data::Batch& batch, size_t place, const std::function<void(const data::Batch&)>& work) {
  const bool is_first = batch.micro == 0, is_last = batch.micro + 1 == batch.num_micro;
  for (const Recording& known : recordings_) {
    if (known.place == place && known.is_first == is_first && known.is_last == is_last) return known.number;
  }
  WELKIN_CHECK(phase_ == StepPhase::Record, "a micro-batch that the recorded step did not have");
  data::Batch placed = batch;
  placed.input = places_[place].input;
  placed.target = places_[place].target;
  placed.sample = places_[place].sample;
  const size_t number = recorder_->record([work, placed] { work(placed); });
  recordings_.push_back({.place = place, .is_first = is_first, .is_last = is_last, .number = number});
  return number;
}

}  // namespace welkin::train
