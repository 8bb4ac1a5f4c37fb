// SPDX-License-Identifier: Apache-2.0
#include "train/run/run_rules.h"

#include "config/resolve/resolve.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::train {

RunLength run_length(const config::RunConfig& config, int64_t samples, int64_t steps_per_epoch) {
  const config::LoopConfig& loop = config.loop;
  RunLength length{.total_steps = loop.num_epochs * steps_per_epoch, .steps_per_epoch = steps_per_epoch, .samples = samples};
  if (loop.num_iters > 0) {
    const bool whole = config.rules.length_rule == config::LengthRule::WholeEpochs;
    length.total_steps = whole ? loop.num_iters / steps_per_epoch * steps_per_epoch : loop.num_iters;
  }
  if (consumes_first_batch(config) && length.total_steps > 0) --length.total_steps;
  if (length.total_steps > 0) return length;
  throw ConfigError("train",
                    cat("the rules of the run leave no step: num_iters=", loop.num_iters, ", num_epochs=", loop.num_epochs,
                        ", steps_per_epoch=", steps_per_epoch, ", length_rule=", name_of(config.rules.length_rule),
                        ", first_batch_rule=", name_of(config.rules.first_batch_rule)),
                    "Give at least the steps of one epoch, or drop compat or these rules");
}

bool consumes_first_batch(const config::RunConfig& config) {
  return config.rules.first_batch_rule == config::FirstBatchRule::Consumed;
}

bool validation_drops_last(const config::RunConfig& config) {
  return config.rules.validation_rule == config::ValidationRule::FullBatches;
}

bool validation_averages_batches(const config::RunConfig& config) {
  return config.rules.validation_rule != config::ValidationRule::EverySample;
}

data::Order validation_order(const config::RunConfig& config, int64_t num_shards) {
  const bool shuffles_alone = config.rules.validation_rule == config::ValidationRule::FullBatches &&
                              config.rules.shard_rule != config::ShardRule::Truncated;
  if (config.rules.validation_rule == config::ValidationRule::Drawn || (shuffles_alone && num_shards == 1))
    return data::Order::Shuffled;
  return data::Order::Sequential;
}

void check_same_optimizer(const Checkpoint& checkpoint, const config::RunConfig& config, const CheckpointGroup& states) {
  const std::string place = checkpoint.folder().string();
  const std::string before = config::saved_values(checkpoint.index().config, cat("config of ", place)).optimizer.optimizer;
  if (before == config.optimizer.optimizer || before.empty()) return;
  throw CheckpointError("checkpoint",
                        cat("it was saved by another optimizer, whose states may mean something else: path=", place,
                            ", optimizer=", before, ", the run's=", config.optimizer.optimizer,
                            ", states=", states.tensors.size(), " (", states.tensors.front().name, " ...)"),
                        "Resume with the optimizer that it was saved with, or say --resume_optimizer fitting (keeps the states "
                        "that fit) or none");
}

}  // namespace welkin::train
