// SPDX-License-Identifier: Apache-2.0
#include "train/step/step.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "data/sample/epoch_plan.h"
#include "ops/base/autocast.h"
#include "parallel/comm/collectives.h"
#include "parallel/shard/shared_gradients.h"
#include "train/step/model_setup.h"

namespace welkin::train {
namespace {

constexpr int64_t kNumRecordedScalars = 6, kNumWishes = 2;

}  // namespace

int64_t samples_of_step(const config::RunConfig& config, int64_t num_replicas, int64_t dataset_size, int64_t step) {
  const data::Dealing dealing = data::parse_dealing(config.rules.shard_rule);
  const int64_t dealt = data::dealt_samples(dataset_size, num_replicas, dealing);
  return std::min(config.loop.global_batch_size, dealt - step * config.loop.global_batch_size);
}

Step::Step(StepParts& parts, const config::RunConfig& config, StepOptions options)
    : parts_(parts), config_(config), options_(std::move(options)), scope_(gradient_scope()) {
  told_ = at::zeros({kNumWishes}, at::TensorOptions(at::kDouble).device(options_.device));
  if (!options_.recorder) return;
  WELKIN_CHECK(!parts_.unit_sum, "the units of rank_invariant cannot be recorded");
  const bool has_others = options_.everyone.size() > 1;
  graph_ = std::make_unique<StepGraph>(
      std::move(options_.recorder), has_others ? RecordingRule::kWarmUpsOfRanks : RecordingRule::kWarmUps, lies_channels_last());
  const at::Tensor rate = parts_.rates->current();
  loss_ = at::zeros({}, at::TensorOptions(at::kFloat).device(options_.device));
  numbers_ = at::zeros({kNumRecordedScalars + kNumWishes}, rate.options());
}

StepRecord Step::run(const Source& next, double wish) {
  if (!graph_) return run_as_it_is(fetch(next), next, wish);
  StepRecord record;
  graph_->run([&] { record = run_recorded(next, wish); });
  return record;
}

data::Batch Step::fetch(const Source& next) {
  const observe::Span span(options_.tracer, "fetch");
  return next();
}

StepRecord Step::run_as_it_is(data::Batch batch, const Source& next, double wish) {
  StepRecord record;
  add_micro_steps(std::move(batch), next, record);
  tell(wish);
  finish(record);
  gradients_.clear();
  parts_.data_parallel->clear_gradients();
  return record;
}

// From the step's loss and gradients to its update.
void Step::finish(StepRecord& record) {
  {
    const observe::Span span(options_.tracer, "reduce");
    reduce_leftovers();
    exchange(record);
  }
  const observe::Span span(options_.tracer, "optimizer");
  collect_gradients();
  record.gradient = finish_gradients(gradients_, record.loss, *parts_.scaler, config_.optimizer.clip_norm, scope_);
  record.rate = parts_.rates->current();
  update(record);
  parts_.scaler->update(record.gradient.overflow);
  parts_.rates->advance(record.gradient.found_inf);
}

// What tp and cp owe the gradients still.
void Step::reduce_leftovers() {
  const bool cp_is_done = parts_.exchange.size() > parts_.replicas.size();
  parallel::reduce_shared_gradients(parts_.table, parts_.groups,
                                    cp_is_done ? parallel::AxisSet(parallel::Axis::Tp) : parallel::Axis::Tp | parallel::Axis::Cp);
}

void Step::collect_gradients() {
  for (const parallel::ParamRow& row : parts_.table.rows()) {
    if (row.gradient().defined()) gradients_.push_back(row.gradient());
  }
}

void Step::update(const StepRecord& record) {
  StepInputs inputs{.rate = record.rate, .found_inf = record.gradient.found_inf, .gradient_scale = record.gradient.scale};
  if (!parts_.optimizer->takes_gradient_scale()) {
    const at::NoGradGuard no_grad;
    apply_gradient_scale(inputs, gradients_);
    inputs.gradient_scale = at::Tensor();
  }
  parts_.optimizer->step(inputs);
}

// Where tp splits parameters a rank knows a part of the gradient only; the verdict is that of all.
GradientScope Step::gradient_scope() const {
  if (!parts_.plan || parts_.groups.mesh().size(parallel::Axis::Tp) == 1) return {};
  GradientScope scope;
  scope.norm = [this](const std::vector<at::Tensor>&) {
    std::vector<at::Tensor> by_row;
    for (const parallel::ParamRow& row : parts_.table.rows()) by_row.push_back(row.gradient());
    return parallel::global_square_norm(parts_.table, by_row, parts_.groups).sqrt();
  };
  scope.any = [this](const at::Tensor& flag) {
    return parallel::all_reduce(parts_.groups.along(parallel::Axis::Tp), flag, parallel::Reduction::Max);
  };
  return scope;
}

// Where the exchange reads it, which may be in a recording that knows no numbers of the host.
void Step::tell(double wish) {
  if (options_.everyone.size() == 1) return;
  told_.select(0, 0).fill_(wish);
  told_.select(0, 1).fill_(options_.waiting ? options_.waiting() : 0);
}

// One message per step and rank: the loss, whether somebody wishes to stop, and how much waits to be told. The gradients are
// equal on all ranks by now, so that with an equal loss every rank comes to the same verdict.
void Step::exchange(StepRecord& record) {
  const parallel::Group& everyone = options_.everyone;
  if (everyone.size() == 1) return;
  const at::Tensor packed = at::cat({record.loss.to(at::kDouble).view({1}), told_});
  const at::Tensor sums = parallel::all_reduce(everyone, packed);
  if (!parts_.unit_sum)
    record.loss = (sums[0] / (everyone.size() / parts_.replicas.size())).to(at::kFloat);  // ranks of a model have the same
  record.wishes = sums.narrow(0, 1, 2);
}

// The gradients of one micro-batch after the other add up; each counts by its samples, so the step's loss and gradient are those
// of the whole batch, for any micro-batch size, any number of ranks and a shorter last one.
void Step::add_micro_steps(data::Batch batch, const Source& next, StepRecord& record) {
  at::Tensor loss = at::zeros({}, at::TensorOptions(at::kFloat).device(options_.device));
  for (;;) {
    record.samples.insert(record.samples.end(), batch.indices.begin(), batch.indices.end());
    loss += run_micro_step(batch);
    if (parts_.unit_sum) add_unit(loss);
    if (batch.micro + 1 == batch.num_micro) break;
    batch = fetch(next);
  }
  if (parts_.unit_sum) sum_units(loss);
  record.loss = loss;
  record.num_samples = samples_of_step(config_, parts_.replicas.size(), options_.dataset_size, batch.step);
  parts_.counter += 1;
}

// The same step as recordings of its micro-batches, the last with all that comes after it. Steps that are not of the recorded
// form, or that somebody looks into, run as they are: with the same result.
StepRecord Step::run_recorded(const Source& next, double wish) {
  data::Batch batch = fetch(next);
  const int64_t samples = samples_of_step(config_, parts_.replicas.size(), options_.dataset_size, batch.step);
  const StepPhase phase = graph_->begin(batch, samples, !may_be_recorded(batch, samples));
  if (phase == StepPhase::WarmUp || phase == StepPhase::Eager) return run_as_it_is(std::move(batch), next, wish);
  std::vector<int64_t> indices;
  for (;;) {
    indices.insert(indices.end(), batch.indices.begin(), batch.indices.end());
    if (batch.micro + 1 == batch.num_micro) tell(wish);
    {
      const observe::Span span(options_.tracer, "graph");
      graph_->run_micro(batch, [this](const data::Batch& placed) { record_micro_step(placed); });
    }
    if (batch.micro + 1 == batch.num_micro) break;
    batch = fetch(next);
  }
  if (options_.everyone.size() > 1) parallel::wait_for_recorded(options_.everyone, [this] { graph_->wait(); });
  StepRecord record = recorded_numbers();
  record.samples = std::move(indices);
  record.num_samples = samples;
  return record;
}

// All ranks come to the same answer. In a short step some may have nothing, and so other work than the rest.
bool Step::may_be_recorded(const data::Batch& first, int64_t samples) const {
  if (options_.watches && options_.watches(first)) return false;
  return options_.everyone.size() == 1 || samples == config_.loop.global_batch_size;
}

// Everything is on the device or the same in every step. The first backward pass finds no gradients and makes them in the
// recordings' memory; the later ones add to them there.
void Step::record_micro_step(const data::Batch& batch) {
  if (batch.micro == 0) loss_.zero_();
  is_recorded_ = true;
  loss_ += run_micro_step(batch);
  is_recorded_ = false;
  if (batch.micro + 1 < batch.num_micro) return;
  parts_.counter += 1;
  StepRecord record;
  record.loss = loss_;
  finish(record);
  const GradientVerdict& gradient = record.gradient;
  const std::vector<at::Tensor> numbers{record.loss,       gradient.norm,      gradient.found_inf,
                                        gradient.overflow, gradient.nonfinite, record.rate};
  for (size_t i = 0; i < numbers.size(); ++i) numbers_.select(0, static_cast<int64_t>(i)).copy_(numbers[i]);
  if (record.wishes.defined()) numbers_.narrow(0, kNumRecordedScalars, kNumWishes).copy_(record.wishes);
  recorded_gradients_ = std::exchange(gradients_, {});
  parts_.data_parallel->clear_gradients();
}

// A copy: the next replay writes over them, and they are read later.
StepRecord Step::recorded_numbers() const {
  const at::Tensor numbers = numbers_.clone();
  const auto single = [&](int64_t i) { return numbers.select(0, i).to(at::kFloat); };
  StepRecord record;
  record.loss = single(0);
  record.gradient.norm = single(1);
  record.gradient.found_inf = single(2);
  record.gradient.overflow = single(3);
  record.gradient.nonfinite = single(4);
  record.rate = numbers.select(0, 5);
  if (options_.everyone.size() > 1) record.wishes = numbers.narrow(0, kNumRecordedScalars, kNumWishes).to(at::kDouble);
  return record;
}

// rank_invariant: a micro-batch is a unit, whose gradients and loss are taken out to be summed in a fixed order.
void Step::add_unit(at::Tensor& loss) {
  std::vector<at::Tensor> unit;
  for (const parallel::ParamRow& row : parts_.table.rows()) {
    unit.push_back(row.gradient().defined() ? row.gradient() : at::zeros_like(row.local));
    row.local.mutable_grad() = at::Tensor();
  }
  unit.push_back(loss);
  parts_.unit_sum->add(std::move(unit));
  loss = at::zeros_like(loss);
}

void Step::sum_units(at::Tensor& loss) {
  const observe::Span span(options_.tracer, "reduce");
  std::vector<at::Tensor> sums = parts_.unit_sum->finish();
  loss = sums.back();
  const auto& rows = parts_.table.rows();
  for (size_t i = 0; i < rows.size(); ++i) rows[i].local.mutable_grad() = sums[i];
}

// The sum of this micro-batch's losses over the samples of the whole step.
at::Tensor Step::micro_loss(const data::Batch& batch) {
  if (batch.input.size(0) == 0) {  // a short last step: nothing for this rank, whose gradients the others still wait for
    at::Tensor nothing = at::zeros({}, at::TensorOptions(at::kFloat).device(options_.device));
    for (const parallel::ParamRow& row : parts_.table.rows()) nothing = nothing + 0 * row.local.sum();
    return nothing;
  }
  const ops::AutocastGuard autocast(options_.device.type(), autocast_dtype(config_.precision.amp_mode));
  const at::Tensor prediction =
      parts_.model->forward(batch.input.contiguous(memory_format(batch.input.dim(), lies_channels_last())),
                            {.seed = config_.loop.seed, .step = parts_.counter, .sample = batch.sample});
  if (options_.seen && !is_recorded_) options_.seen(batch, prediction);
  const int64_t samples = samples_of_step(config_, parts_.replicas.size(), options_.dataset_size, batch.step);
  return parts_.share.losses(*parts_.loss, prediction, batch.target).sum() / samples;
}

// The exchange averages over its ranks, and the step wants the sum of their shares.
at::Tensor Step::run_micro_step(const data::Batch& batch) {
  at::Tensor loss, scaled;
  {
    const observe::Span span(options_.tracer, "forward");
    loss = micro_loss(batch);
    scaled = parts_.scaler->scaled(loss);
    const bool averages = parts_.exchange.size() > 1 && !parts_.unit_sum;
    if (averages) scaled = scaled * parts_.exchange.size();
  }
  const observe::Span span(options_.tracer, "backward");
  parts_.data_parallel->backward(scaled, batch.micro + 1 == batch.num_micro);
  return loss.detach();
}

}  // namespace welkin::train
