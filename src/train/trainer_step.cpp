// SPDX-License-Identifier: Apache-2.0
// One optimizer step. Nothing here waits for the device.
#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include "ops/autocast.h"
#include "train/gradients.h"
#include "train/trainer.h"

namespace welkin::train {

StepRecord Trainer::train_step() {
  StepRecord record;
  record.loss = run_micro_steps(record);
  std::vector<at::Tensor> gradients;
  for (const parallel::ParamRow& row : table_.rows()) {
    if (row.gradient().defined()) gradients.push_back(row.gradient());
  }
  record.gradient = finish_gradients(gradients, record.loss, *scaler_, config_.optimizer.clip_norm);
  record.rate = rates_->current();
  optimizer_->step({.rate = record.rate, .found_inf = record.gradient.found_inf});
  scaler_->update(record.gradient.overflow);
  rates_->advance(record.gradient.found_inf);
  clear_gradients();
  meter_->add(record);
  return record;
}

// The gradients of one micro-batch after the other add up; each counts by its samples, so the step's loss and gradient are those
// of the whole batch, for any micro-batch size and a shorter last one.
at::Tensor Trainer::run_micro_steps(StepRecord& record) {
  record.iteration = position_.iteration + 1;
  at::Tensor loss = at::zeros({}, at::TensorOptions(at::kFloat).device(device_));
  data::Batch batch;
  do {
    batch = pipeline_->next();
    record.num_samples += batch.input.size(0);
    record.samples.insert(record.samples.end(), batch.indices.begin(), batch.indices.end());
    loss += run_micro_step(batch);
  } while (batch.micro + 1 < batch.num_micro);
  step_ += 1;
  return loss;
}

at::Tensor Trainer::run_micro_step(const data::Batch& batch) {
  at::Tensor loss;
  {
    const ops::AutocastGuard autocast(device_.type(), autocast_dtype(config_.precision.amp_mode));
    const at::Tensor prediction =
        model_->forward(batch.input, {.seed = config_.loop.seed, .step = step_, .sample = batch.sample});
    loss = loss_->per_sample(prediction, batch.target).sum() / batch.step_samples;
    keep_picture(batch, prediction);
  }
  scaler_->scaled(loss).backward();
  return loss.detach();
}

// The tutorials show the last training batch's first sample; only the epoch's last step is worth the copy.
void Trainer::keep_picture(const data::Batch& batch, const at::Tensor& prediction) {
  const bool is_last_step =
      position_.step_in_epoch + 1 == length_.steps_per_epoch || position_.iteration + 1 == length_.total_steps;
  if (!is_last_step || batch.micro != 0 || !journal_->draws_pictures()) return;
  const int64_t channel = journal_->picture_channel();
  picture_ =
      FieldPair{.target = plane_of(batch.target.select(0, 0), channel), .prediction = plane_of(prediction.select(0, 0), channel)};
}

void Trainer::clear_gradients() {
  for (const parallel::ParamRow& row : table_.rows()) row.local.mutable_grad() = at::Tensor();
}

}  // namespace welkin::train
