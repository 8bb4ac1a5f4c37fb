// SPDX-License-Identifier: Apache-2.0
// What the run does around one step (step.h): it counts, checks replicas when they are due, and keeps the picture.
#include "core/text.h"
#include "parallel/shard/shared_gradients.h"
#include "train/device/device_memory.h"
#include "train/run/trainer.h"

namespace welkin::train {

StepRecord Trainer::train_step() {
  StepRecord record = step_->run([this] { return next_batch(); }, context_.interrupt.requested() ? 1 : 0);
  record.iteration = position_.iteration + 1;
  read_requests(record);
  meter_->add(record);
  check_replicas_if_due();
  return record;
}

// Of all ranks: whether one was asked to stop, and whether notes about samples wait.
void Trainer::read_requests(const StepRecord& record) {
  if (!record.requests.defined()) return;
  const at::Tensor requests = record.requests.cpu();
  const auto* found = requests.const_data_ptr<double>();
  stop_agreed_ = found[0] > 0;
  if (found[1] > 0) data_notes_.share();
}

// The tutorials' range: what of reading and copying is not hidden.
data::Batch Trainer::next_batch() {
  const observe::Span span(&profile_->tracer(), "data copy in", position_.step_in_epoch);
  return pipeline_->next();
}

void Trainer::check_replicas_if_due() {
  const int64_t interval = config_.parallel.replica_check_interval;
  const int64_t done = position_.iteration + 1;
  if (context_.world.size() == 1 || config_.parallel.noddp || interval == 0 || done % interval != 0) return;
  parallel::check_replicas(setup_->table, layout_.groups, cat("at step ", done));
}

void Trainer::after_forward(const data::Batch& batch, const at::Tensor& prediction) {
  keep_picture(batch, prediction);
  if (logs_this_step() && batch.micro == 0) context_.log.info(forward_pass_memory_line(device_));
}

bool Trainer::logs_this_step() const { return layout_.plan && position_.step_in_epoch == 1; }

// The tutorials show the last training batch's first sample; only the epoch's last step is worth the copy.
bool Trainer::draws_this_step() const {
  const bool is_last_step =
      position_.step_in_epoch + 1 == length_.steps_per_epoch || position_.iteration + 1 == length_.total_steps;
  return is_last_step && journal_->draws_pictures();
}

void Trainer::keep_picture(const data::Batch& batch, const at::Tensor& prediction) {
  if (!draws_this_step() || batch.micro != 0) return;
  const int64_t channel = journal_->picture_channel();
  const auto whole = [&](const at::Tensor& samples) {
    return layout_.share.whole_fields(plane_of(samples.select(0, 0), channel));
  };
  picture_ = FieldPair{.target = whole(batch.target), .prediction = whole(prediction)};
}

}  // namespace welkin::train
