// SPDX-License-Identifier: Apache-2.0
#include "train/step/step.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <utility>

#include "config/schema/batch_plan.h"
#include "data/sample/epoch_plan.h"
#include "ops/base/autocast.h"
#include "parallel/comm/collectives.h"
#include "parallel/shard/model_parallel_gradients.h"
#include "parallel/sharding/whole_parameters.h"
#include "train/step/model_setup.h"
#include "train/step/recorded_step.h"

namespace welkin::train {
namespace {

at::Tensor zero_loss(c10::Device device) { return at::zeros({}, at::TensorOptions(at::kFloat).device(device)); }

}  // namespace

int64_t samples_of_step(const config::RunConfig& config, int64_t num_replicas, int64_t dataset_size, int64_t step) {
  const int64_t sharded = data::sharded_samples(dataset_size, num_replicas, config.rules.shard_rule);
  return std::min(config.loop.global_batch_size, sharded - step * config.loop.global_batch_size);
}

std::unique_ptr<Step> make_step(TrainSetup& setup, const config::RunConfig& config, StepOptions options) {
  if (!options.recorder) return std::make_unique<EagerStep>(setup, config, std::move(options));
  return std::make_unique<RecordedStep>(setup, config, std::move(options));
}

EagerStep::EagerStep(TrainSetup& setup, const config::RunConfig& config, StepOptions options)
    : setup_(setup),
      config_(config),
      options_(std::move(options)),
      scope_(gradient_scope()),
      sum_over_parts_(sum_over_parts()),
      trained_rows_(trained_rows()),
      channels_last_(options_.device.is_cuda() && config.backend.channels_last),
      requests_(at::zeros({kNumRequests}, at::TensorOptions(at::kDouble).device(options_.device))) {}

// Gradients accumulate over the micro-batches. Each micro-batch is weighted by its number of samples, so the step's loss and
// gradient are those of the whole batch for any micro-batch size, any number of ranks and a shorter last batch.
StepRecord EagerStep::run(data::Batch batch, const Source& next, double stop_requested) {
  std::vector<int64_t> samples;
  if (is_rechecked()) recheck(batch);
  begin(zero_loss(options_.device));
  const bool joins = setup_.data_parallel->joins_every_backward() || setup_.joins_passes();
  if (setup_.pipeline && (joins || batch.input.size(0) > 0)) {
    pipeline_step(batch, next, samples);
  } else {
    for (;;) {
      samples.insert(samples.end(), batch.indices.begin(), batch.indices.end());
      micro_step(batch);
      if (batch.micro + 1 == batch.num_micro) break;
      batch = fetch(next);
    }
    join_micro_steps(batch);
  }
  post_requests(stop_requested);
  StepRecord record = finish();
  record.samples = std::move(samples);
  record.num_samples = samples_of(batch);
  clear_gradients();
  return record;
}

data::Batch EagerStep::fetch(const Source& next) {
  const observe::Span span(options_.tracer, "fetch");
  return next();
}

int64_t EagerStep::samples_of(const data::Batch& batch) const {
  return samples_of_step(config_, setup_.layout.replicas.size(), options_.dataset_size, batch.step);
}

// Forward and backward. The last backward pass of a step sends the gradients as they become ready.
void EagerStep::micro_step(const data::Batch& batch) {
  at::Tensor loss, scaled;
  {
    const observe::Span span(options_.tracer, "forward");
    loss = micro_loss(batch);
    scaled = scaled_loss(loss);
  }
  {
    const observe::Span span(options_.tracer, "backward");
    setup_.data_parallel->backward(scaled, batch.micro + 1 == micro_steps_of(batch));
  }
  loss_ += loss.detach();
  if (setup_.unit_sum) add_unit();
}

// The root of the backward pass. The exchange averages over its ranks, but the step needs the sum of their shares.
at::Tensor EagerStep::scaled_loss(at::Tensor& loss) const {
  at::Tensor scaled = setup_.scaler->scaled(loss);
  if (options_.change_losses) options_.change_losses(loss, scaled);
  const bool averages = setup_.layout.exchange.size() > 1 && !setup_.unit_sum && setup_.data_parallel->averages();
  return averages ? scaled * setup_.layout.exchange.size() : scaled;
}

// (), zero, with a gradient of zeros for every parameter.
at::Tensor EagerStep::nothing_of_all() const {
  at::Tensor nothing = zero_loss(options_.device);
  for (const parallel::ParamRow& row : setup_.table.rows()) nothing = nothing + 0 * row.local.sum();
  return nothing;
}

// The sum of this micro-batch's losses over the samples of the whole step.
at::Tensor EagerStep::micro_loss(const data::Batch& batch) {
  if (batch.input.size(0) == 0) {  // a short last step: no samples for this rank, but the others wait for its gradients
    if (setup_.joins_passes()) {
      const ops::AutocastGuard autocast(options_.device.type(), autocast_dtype(config_.precision.amp_mode));
      return setup_.outputs_of_zeros(batch.input, batch.target).to(at::kFloat) * 0;
    }
    return nothing_of_all();
  }
  const ops::AutocastGuard autocast(options_.device.type(), autocast_dtype(config_.precision.amp_mode));
  PredictionHook on_first;
  if (options_.on_forward) on_first = [&](const at::Tensor& prediction) { show_forward(batch, prediction); };
  return losses_of(batch, on_first).sum() / samples_of(batch);
}

// (B)
at::Tensor EagerStep::losses_of(const data::Batch& batch, const PredictionHook& on_first) const {
  return setup_.losses(batch.input.contiguous(memory_format(batch.input.dim(), channels_last_)), batch.target,
                       {.seed = config_.loop.seed, .step = setup_.counter, .sample = batch.sample}, on_first);
}

// For samples of several steps it shows the first one.
void EagerStep::show_forward(const data::Batch& batch, const at::Tensor& prediction) const {
  if (!setup_.rollout) return options_.on_forward(batch, prediction);
  data::Batch first = batch;
  first.input = setup_.rollout->first_input(batch.input);
  first.target = setup_.rollout->first_target(batch.target);
  options_.on_forward(first, prediction);
}

// The number for this rank, or for all if their backward passes go together: a short step may leave a rank fewer samples.
int64_t EagerStep::micro_steps_of(const data::Batch& batch) const {
  if (!setup_.data_parallel->joins_every_backward()) return batch.num_micro;
  const int64_t replicas = setup_.layout.replicas.size();
  const int64_t most = (samples_of(batch) + replicas - 1) / replicas;
  const int64_t micro = config::batch_plan(config_, replicas).micro;
  return std::max(batch.num_micro, (most + micro - 1) / micro);
}

void EagerStep::join_micro_steps(const data::Batch& last) {
  data::Batch empty = last;
  empty.input = last.input.narrow(0, 0, 0);
  for (empty.micro = last.micro + 1; empty.micro < micro_steps_of(last); ++empty.micro) micro_step(empty);
}

// Writes to the device, where sum_over_ranks() reads: that may be part of a recording, which takes no host numbers.
void EagerStep::post_requests(double stop_requested) {
  if (options_.world_group.size() == 1) return;
  requests_.select(0, 0).fill_(stop_requested);
  requests_.select(0, 1).fill_(options_.pending_notes ? options_.pending_notes() : 0);
  requests_.select(0, 2).fill_(options_.files_written && options_.files_written() ? 1 : 0);
  requests_.select(0, 3).fill_(options_.others_wait && options_.others_wait() ? 1 : 0);
}

// From the summed loss and gradients of the micro-batches to the update.
StepRecord EagerStep::finish() {
  StepRecord record;
  setup_.counter += 1;
  {
    const observe::Span span(options_.tracer, "reduce");
    if (setup_.unit_sum) sum_units();
    record.loss = loss_;
    const bool has_cp = setup_.layout.exchange.size() > setup_.layout.replicas.size();  // in the exchange of the backward pass
    parallel::reduce_model_parallel_gradients(
        setup_.table, setup_.layout.groups,
        has_cp ? parallel::AxisSet(parallel::Axis::Tp) : parallel::Axis::Tp | parallel::Axis::Cp);
    parallel::sum_tied_gradients(setup_.table);
    sum_over_ranks(record);
  }
  const observe::Span span(options_.tracer, "optimizer");
  std::vector<at::Tensor> counted;
  for (const parallel::ParamRow& row : setup_.table.rows()) {
    if (!row.gradient().defined()) continue;
    gradients_.push_back(row.gradient());
    if (row.is_counted()) counted.push_back(row.gradient());
  }
  record.gradient = check_gradients(counted, record.loss, *setup_.scaler, config_.optimizer.clip_norm, scope_);
  record.rate = setup_.lr_table->current();
  if (setup_.spikes) look_for_spike(record);
  update(record);
  if (setup_.spikes) setup_.spikes->add(record.loss, record.gradient.norm, record.spike, record.gradient.found_inf);
  setup_.scaler->update(record.gradient.overflow);
  setup_.lr_table->advance(record.gradient.found_inf);
  return record;
}

// One message per step and rank: the loss, the stop request, and the number of notes that wait. The gradients are equal on all
// ranks by now, so with an equal loss every rank comes to the same verdict.
void EagerStep::sum_over_ranks(StepRecord& record) {
  const parallel::Group& world_group = options_.world_group;
  if (world_group.size() == 1) return;
  const at::Tensor packed = at::cat({record.loss.to(at::kDouble).view({1}), requests_});
  const at::Tensor sums = parallel::all_reduce(world_group, packed);
  if (!setup_.unit_sum) {
    // Ranks of a model have the same loss, except in a pipeline, where the last stage has it.
    const int64_t stages = setup_.layout.groups.mesh().size(parallel::Axis::Pp);
    record.loss = (sums[0] / (world_group.size() / (setup_.layout.replicas.size() * stages))).to(at::kFloat);
  }
  record.requests = sums.narrow(0, 1, kNumRequests);
}

// Loss and norm are equal on all ranks only up to rounding: the ranks agree on one verdict.
void EagerStep::look_for_spike(StepRecord& record) const {
  record.spike = setup_.spikes->judge(record.loss, record.gradient.norm);
  if (options_.world_group.size() > 1) {
    record.spike = parallel::all_reduce(options_.world_group, record.spike, parallel::Reduction::Max);
  }
  if (setup_.spikes->skips()) record.gradient.found_inf = at::maximum(record.gradient.found_inf, record.spike);
  record.rate = setup_.spikes->lowered(record.rate);
}

void EagerStep::update(const StepRecord& record) {
  StepInputs inputs{.rate = record.rate,
                    .found_inf = record.gradient.found_inf,
                    .gradient_scale = record.gradient.scale,
                    .sum_over_parts = sum_over_parts_};
  if (sum_over_parts_) add_exchanges(inputs);
  if (!setup_.optimizer->takes_gradient_scale()) {
    const at::NoGradGuard no_grad;
    apply_gradient_scale(inputs, gradients_);
    inputs.gradient_scale = at::Tensor();
  }
  setup_.optimizer->step(inputs);
  setup_.data_parallel->after_update();
  if (setup_.weight_average) setup_.weight_average->update(inputs.found_inf);
}

std::vector<at::Tensor> EagerStep::clear_gradients() {
  std::vector<at::Tensor> gradients = std::exchange(gradients_, {});
  setup_.data_parallel->clear_gradients();
  return gradients;
}

// If tensor parallelism splits parameters, or gradients are shared out, a rank has only a part of the gradient. The verdict is
// for the whole.
GradientScope EagerStep::gradient_scope() const {
  GradientScope scope = layer_scope();
  if (!setup_.pipeline) return scope;
  const parallel::Group stages = setup_.layout.groups.along(parallel::Axis::Pp);
  return {.norm =
              [stages, inner = scope.norm](const std::vector<at::Tensor>& gradients) {
                const at::Tensor square = inner(gradients).to(at::kDouble).square();
                return parallel::all_reduce(stages, square).sqrt().to(at::kFloat);
              },
          .any = [stages, inner = scope.any](
                     const at::Tensor& flag) { return parallel::all_reduce(stages, inner(flag), parallel::Reduction::Max); }};
}

// The scope within one stage of a pipeline, or without one.
GradientScope EagerStep::layer_scope() const {
  const parallel::Group& shards = setup_.layout.sharding.shards;
  GradientScope scope;
  if (!setup_.layout.plan || setup_.layout.groups.mesh().size(parallel::Axis::Tp) == 1) {
    if (shards.size() == 1) return scope;
    scope.norm = [shards](const std::vector<at::Tensor>& gradients) {
      return parallel::all_reduce(shards, global_norm(gradients).to(at::kDouble).square()).sqrt().to(at::kFloat);
    };
    return scope;
  }
  scope.norm = [this, shards](const std::vector<at::Tensor>&) {
    std::vector<at::Tensor> by_row;
    for (const parallel::ParamRow& row : setup_.table.rows()) by_row.push_back(row.gradient());
    return parallel::global_square_norm(setup_.table, by_row, setup_.layout.groups, shards).sqrt();
  };
  scope.any = [this](const at::Tensor& flag) {
    return parallel::all_reduce(setup_.layout.groups.along(parallel::Axis::Tp), flag, parallel::Reduction::Max);
  };
  return scope;
}

// The optimizer's parameters are the rows that are trained, in their order.
std::vector<size_t> EagerStep::trained_rows() const {
  std::vector<size_t> rows;
  for (size_t row = 0; row < setup_.table.rows().size(); ++row) {
    if (setup_.table.rows()[row].local.requires_grad()) rows.push_back(row);
  }
  return rows;
}

// The exchanges of parts besides sums of numbers; the optimizer's numbers become rows of the table.
void EagerStep::add_exchanges(StepInputs& inputs) const {
  const auto in_table = [this](const std::vector<size_t>& parameters) {
    std::vector<size_t> rows;
    for (const size_t parameter : parameters) rows.push_back(trained_rows_[parameter]);
    return rows;
  };
  inputs.add_over_parts = [this, in_table](const std::vector<size_t>& parameters, const std::vector<at::Tensor>& values) {
    parallel::add_over_parts(setup_.table, in_table(parameters), values, setup_.layout.groups, setup_.layout.sharding.shards);
  };
  inputs.on_wholes = [this, in_table](const std::vector<size_t>& parameters, const WholeWork& work) {
    parallel::each_whole(setup_.table, in_table(parameters), setup_.layout.groups, setup_.layout.sharding.shards,
                         {.part = work.part, .body = work.body, .take = work.take});
  };
}

SumOverParts EagerStep::sum_over_parts() const {
  const bool is_split = setup_.layout.plan && setup_.layout.groups.mesh().size(parallel::Axis::Tp) > 1;
  if (!is_split && !setup_.is_sharded()) return {};
  return [this](const at::Tensor& numbers) {
    return parallel::sum_over_parts(setup_.table, trained_rows_, numbers, setup_.layout.groups, setup_.layout.sharding.shards);
  };
}

// rank_invariant: a micro-batch is a unit. Its gradients and loss are taken out, to be summed in a fixed order.
void EagerStep::add_unit() {
  std::vector<at::Tensor> unit;
  for (const parallel::ParamRow& row : setup_.table.rows()) {
    unit.push_back(row.gradient().defined() ? row.gradient() : at::zeros_like(row.local));
    row.local.mutable_grad() = at::Tensor();
  }
  unit.push_back(loss_);
  setup_.unit_sum->add(std::move(unit));
  loss_ = at::zeros_like(loss_);
}

void EagerStep::sum_units() {
  std::vector<at::Tensor> sums = setup_.unit_sum->finish();
  loss_ = sums.back();
  const auto& rows = setup_.table.rows();
  for (size_t i = 0; i < rows.size(); ++i) rows[i].local.mutable_grad() = sums[i];
}

}  // namespace welkin::train
