// SPDX-License-Identifier: Apache-2.0
// One optimizer step. Nothing here waits for the device.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <utility>

#include "core/text.h"
#include "data/epoch_plan.h"
#include "ops/autocast.h"
#include "parallel/collectives.h"
#include "parallel/shared_gradients.h"
#include "train/device_memory.h"
#include "train/gradients.h"
#include "train/trainer.h"

namespace welkin::train {

StepRecord Trainer::train_step() {
  StepRecord record;
  record.loss = run_micro_steps(record);
  reduce_leftovers();
  exchange_records(record);
  std::vector<at::Tensor> gradients;
  for (const parallel::ParamRow& row : table_.rows()) {
    if (row.gradient().defined()) gradients.push_back(row.gradient());
  }
  record.gradient = finish_gradients(gradients, record.loss, *scaler_, config_.optimizer.clip_norm, gradient_scope());
  record.rate = rates_->current();
  optimizer_->step({.rate = record.rate, .found_inf = record.gradient.found_inf});
  scaler_->update(record.gradient.overflow);
  rates_->advance(record.gradient.found_inf);
  data_parallel_->clear_gradients();
  meter_->add(record);
  check_replicas_if_due();
  return record;
}

// What tp and cp owe the gradients still.
void Trainer::reduce_leftovers() {
  const bool cp_is_done = exchange_.size() > replicas_.size();
  parallel::reduce_shared_gradients(table_, groups_,
                                    cp_is_done ? parallel::AxisSet(parallel::Axis::Tp) : parallel::Axis::Tp | parallel::Axis::Cp);
}

// Where tp splits parameters a rank knows a part of the gradient only; the verdict is that of all.
GradientScope Trainer::gradient_scope() const {
  if (!plan_ || groups_.mesh().size(parallel::Axis::Tp) == 1) return {};
  GradientScope scope;
  scope.norm = [this](const std::vector<at::Tensor>&) {
    std::vector<at::Tensor> by_row;
    for (const parallel::ParamRow& row : table_.rows()) by_row.push_back(row.gradient());
    return parallel::global_square_norm(table_, by_row, groups_).sqrt();
  };
  scope.any = [this](const at::Tensor& flag) {
    return parallel::all_reduce(groups_.along(parallel::Axis::Tp), flag, parallel::Reduction::Max);
  };
  return scope;
}

void Trainer::check_replicas_if_due() {
  const int64_t interval = config_.parallel.replica_check_interval;
  const int64_t done = position_.iteration + 1;
  if (context_.world.size() == 1 || config_.parallel.noddp || interval == 0 || done % interval != 0) return;
  parallel::check_replicas(table_, groups_, cat("at step ", done));
}

// One message per step and rank: the loss, and whether somebody wishes to stop. The gradients are equal on all ranks by now, so
// that with an equal loss every rank comes to the same verdict.
void Trainer::exchange_records(StepRecord& record) {
  if (context_.world.size() == 1) return;
  const double wish = context_.interrupt.requested() ? 1 : 0;
  const at::Tensor packed =
      at::stack({record.loss.to(at::kDouble), at::full({}, wish, record.loss.options().dtype(at::kDouble))});
  const at::Tensor sums = parallel::all_reduce(context_.world.everyone(), packed);
  if (!unit_sum_)
    record.loss = (sums[0] / (context_.world.size() / replicas_.size())).to(at::kFloat);  // ranks of a model have the same
  stop_agreed_ = sums[1].item<double>() > 0;
}

// Over all ranks: a last step of an epoch may be shorter.
int64_t Trainer::samples_of_step(int64_t step) const {
  const data::Dealing dealing = data::parse_dealing(config_.rules.shard_rule);
  const int64_t dealt = data::dealt_samples(train_data_->size(), replicas_.size(), dealing);
  return std::min(config_.loop.global_batch_size, dealt - step * config_.loop.global_batch_size);
}

// The gradients of one micro-batch after the other add up; each counts by its samples, so the step's loss and gradient are those
// of the whole batch, for any micro-batch size, any number of ranks and a shorter last one.
at::Tensor Trainer::run_micro_steps(StepRecord& record) {
  record.iteration = position_.iteration + 1;
  at::Tensor loss = at::zeros({}, at::TensorOptions(at::kFloat).device(device_));
  data::Batch batch;
  do {
    batch = pipeline_->next();
    record.samples.insert(record.samples.end(), batch.indices.begin(), batch.indices.end());
    loss += run_micro_step(batch);
    if (unit_sum_) add_unit(loss);
  } while (batch.micro + 1 < batch.num_micro);
  if (unit_sum_) sum_units(loss);
  record.num_samples = samples_of_step(batch.step);
  step_ += 1;
  return loss;
}

// rank_invariant: a micro-batch is a unit, whose gradients and loss are taken out to be summed in a fixed order.
void Trainer::add_unit(at::Tensor& loss) {
  std::vector<at::Tensor> unit;
  for (const parallel::ParamRow& row : table_.rows()) {
    unit.push_back(row.gradient().defined() ? row.gradient() : at::zeros_like(row.local));
    row.local.mutable_grad() = at::Tensor();
  }
  unit.push_back(loss);
  unit_sum_->add(std::move(unit));
  loss = at::zeros_like(loss);
}

void Trainer::sum_units(at::Tensor& loss) {
  std::vector<at::Tensor> sums = unit_sum_->finish();
  loss = sums.back();
  for (size_t i = 0; i < table_.rows().size(); ++i) table_.rows()[i].local.mutable_grad() = sums[i];
}

// The sum of this micro-batch's losses over the samples of the whole step.
at::Tensor Trainer::micro_loss(const data::Batch& batch) {
  if (batch.input.size(0) == 0) {  // a short last step: nothing for this rank, whose gradients the others still wait for
    at::Tensor nothing = at::zeros({}, at::TensorOptions(at::kFloat).device(device_));
    for (const parallel::ParamRow& row : table_.rows()) nothing = nothing + 0 * row.local.sum();
    return nothing;
  }
  const ops::AutocastGuard autocast(device_.type(), autocast_dtype(config_.precision.amp_mode));
  const at::Tensor prediction = model_->forward(batch.input, {.seed = config_.loop.seed, .step = step_, .sample = batch.sample});
  keep_picture(batch, prediction);
  if (plan_ && position_.step_in_epoch == 1 && batch.micro == 0) context_.log.info(forward_pass_memory_line(device_));
  return share_.losses(*loss_, prediction, batch.target).sum() / samples_of_step(batch.step);
}

// The exchange averages over its ranks, and the step wants the sum of their shares.
at::Tensor Trainer::run_micro_step(const data::Batch& batch) {
  const at::Tensor loss = micro_loss(batch);
  const at::Tensor scaled = scaler_->scaled(loss);
  const bool averages = exchange_.size() > 1 && !unit_sum_;
  data_parallel_->backward(averages ? scaled * exchange_.size() : scaled, batch.micro + 1 == batch.num_micro);
  return loss.detach();
}

// The tutorials show the last training batch's first sample; only the epoch's last step is worth the copy.
void Trainer::keep_picture(const data::Batch& batch, const at::Tensor& prediction) {
  const bool is_last_step =
      position_.step_in_epoch + 1 == length_.steps_per_epoch || position_.iteration + 1 == length_.total_steps;
  if (!is_last_step || batch.micro != 0 || !journal_->draws_pictures()) return;
  const int64_t channel = journal_->picture_channel();
  const auto whole = [&](const at::Tensor& samples) { return share_.whole_fields(plane_of(samples.select(0, 0), channel)); };
  picture_ = FieldPair{.target = whole(batch.target), .prediction = whole(prediction)};
}

}  // namespace welkin::train
