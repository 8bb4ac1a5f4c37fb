// SPDX-License-Identifier: Apache-2.0
#include "train/step/recorded_step.h"

#include <ATen/ops/zeros.h>

#include <utility>

#include "core/error.h"
#include "parallel/comm/collectives.h"

namespace welkin::train {
namespace {

constexpr int64_t kNumScalars = 6;

int64_t warm_ups_of(const parallel::Group& world_group) {
  return world_group.size() > 1 ? RecordingRule::kWarmUpsOfRanks : RecordingRule::kWarmUps;
}

// on_forward is for eager steps only.
StepOptions silent_while(const bool& is_recording, StepOptions options) {
  options.recorder = nullptr;
  if (!options.on_forward) return options;
  options.on_forward = [&is_recording, call = std::move(options.on_forward)](const data::Batch& batch, const at::Tensor& out) {
    if (!is_recording) call(batch, out);
  };
  return options;
}

}  // namespace

RecordedStep::RecordedStep(TrainSetup& setup, const config::RunConfig& config, StepOptions options)
    : world_group_(options.world_group),
      global_batch_size_(config.loop.global_batch_size),
      tracer_(options.tracer),
      wants_forward_(options.wants_forward),
      graph_(std::move(options.recorder), warm_ups_of(world_group_), options.device.is_cuda() && config.backend.channels_last),
      step_(setup, config, silent_while(is_recording_, std::move(options))) {
  WELKIN_CHECK(!setup.unit_sum, "the units of rank_invariant cannot be recorded");
  const at::Tensor rate = setup.lr_table->current();
  loss_ = at::zeros({}, rate.options().dtype(at::kFloat));
  numbers_ = at::zeros({kNumScalars + kNumRequests}, rate.options());
}

StepRecord RecordedStep::run(const Source& next, double stop_requested) {
  StepRecord record;
  graph_.run([&] { record = run_in_graph(next, stop_requested); });
  return record;
}

StepRecord RecordedStep::run_in_graph(const Source& next, double stop_requested) {
  data::Batch batch = step_.fetch(next);
  const int64_t samples = step_.samples_of(batch);
  const StepPhase phase = graph_.begin(batch, samples, !may_be_recorded(batch, samples));
  if (phase == StepPhase::WarmUp || phase == StepPhase::Eager) return step_.run(std::move(batch), next, stop_requested);
  std::vector<int64_t> indices;
  for (;;) {
    indices.insert(indices.end(), batch.indices.begin(), batch.indices.end());
    if (batch.micro + 1 == batch.num_micro) step_.post_requests(stop_requested);
    {
      const observe::Span span(tracer_, "graph");
      graph_.run_micro(batch, [this](const data::Batch& placed) { record(placed); });
    }
    if (batch.micro + 1 == batch.num_micro) break;
    batch = step_.fetch(next);
  }
  if (world_group_.size() > 1) parallel::wait_for_recorded(world_group_, [this] { graph_.wait(); });
  StepRecord record = recorded_numbers();
  record.samples = std::move(indices);
  record.num_samples = samples;
  return record;
}

// All ranks come to the same answer. In a short step some may have no samples, and so different work.
bool RecordedStep::may_be_recorded(const data::Batch& first, int64_t samples) const {
  if (wants_forward_ && wants_forward_(first)) return false;
  return world_group_.size() == 1 || samples == global_batch_size_;
}

// Every value is on the device or the same in every step. The first backward pass finds no gradients and makes them in the
// recordings' memory; the later ones add to them there.
void RecordedStep::record(const data::Batch& batch) {
  is_recording_ = true;
  if (batch.micro == 0) step_.begin(loss_.zero_());
  step_.micro_step(batch);
  is_recording_ = false;
  if (batch.micro + 1 < batch.num_micro) return;
  const StepRecord record = step_.finish();
  const GradientStatus& gradient = record.gradient;
  const std::vector<at::Tensor> numbers{record.loss,       gradient.norm,      gradient.found_inf,
                                        gradient.overflow, gradient.nonfinite, record.rate};
  for (size_t i = 0; i < numbers.size(); ++i) numbers_.select(0, static_cast<int64_t>(i)).copy_(numbers[i]);
  if (record.requests.defined()) numbers_.narrow(0, kNumScalars, kNumRequests).copy_(record.requests);
  gradients_ = step_.clear_gradients();
}

// Returns a copy: the next replay overwrites the numbers, and they are read later.
StepRecord RecordedStep::recorded_numbers() const {
  const at::Tensor numbers = numbers_.clone();
  const auto single = [&](int64_t i) { return numbers.select(0, i).to(at::kFloat); };
  StepRecord record;
  record.loss = single(0);
  record.gradient.norm = single(1);
  record.gradient.found_inf = single(2);
  record.gradient.overflow = single(3);
  record.gradient.nonfinite = single(4);
  record.rate = numbers.select(0, 5);
  if (world_group_.size() > 1) record.requests = numbers.narrow(0, kNumScalars, kNumRequests).to(at::kDouble);
  return record;
}

}  // namespace welkin::train
