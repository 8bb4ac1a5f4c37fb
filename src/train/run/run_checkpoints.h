// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a run: what they hold, when one is saved, and how a run continues from one. Where tensors are split over
// ranks, every rank takes part in saving and loading; the first one writes.
#pragma once

#include <c10/core/Device.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint/checkpoint_store.h"
#include "train/checkpoint/whole_tensors.h"
#include "train/run/run_data.h"
#include "train/run/run_state.h"
#include "train/run/trainer_context.h"
#include "train/step/setup.h"
#include "train/step/step_record.h"

namespace welkin::train {

class RunCheckpoints {
 public:
  // All references outlive it.
  RunCheckpoints(const TrainerContext& context, std::filesystem::path folder, TrainSetup& setup, EpochMeter& meter, RunData& data,
                 RunState& state, c10::Device device);

  // Continues from the newest good checkpoint where the run resumes, else takes the weights of `init_from`, else nothing. Every
  // rank calls it. CheckpointError, DataError for a checkpoint that does not fit the run.
  void start_or_resume();
  // The weights of `init_from`, if there is one. Every rank calls it.
  void load_initial_weights();
  // Checkpoints of steps beyond the present one are those of another continuation: they are put aside.
  void claim();

  void save();
  void save_if_due(bool is_best);
  void prune();
  std::string newest() const;  // the folder; empty where there is none

 private:
  std::optional<Checkpoint> find();
  void put_aside();
  void check_none(size_t damaged) const;
  std::vector<CheckpointGroup> own_groups();
  TensorLayout tensor_layout() const;
  void save_pieces(const std::vector<CheckpointGroup>& groups);
  bool lacks(const Checkpoint& checkpoint, const CheckpointGroup& group) const;
  CheckpointIndex index() const;
  std::string best_metric_name() const;
  BestRecord best_record() const;
  void check_rules(const Checkpoint& checkpoint) const;
  void load_judgement(const CheckpointIndex& index);
  void load(const Checkpoint& checkpoint);
  void load_imported(const Checkpoint& checkpoint);
  void load_optimizer(const Checkpoint& checkpoint, const CheckpointGroup& group);

  const TrainerContext& context_;
  const config::RunConfig& config_;
  CheckpointStore store_;
  TrainSetup& setup_;
  EpochMeter& meter_;
  RunData& data_;
  RunState& state_;
  c10::Device device_;
};

}  // namespace welkin::train
