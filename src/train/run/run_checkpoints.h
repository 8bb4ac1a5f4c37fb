// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a run: their content, when one is saved, and how a run continues from one. If tensors are split over
// ranks, every rank takes part in saving and loading; the first one writes.
#pragma once

#include <c10/core/Device.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint/background_verifier.h"
#include "train/checkpoint/checkpoint_writer.h"
#include "train/checkpoint/whole_tensors.h"
#include "train/monitor/agreed_interval.h"
#include "train/nodes/checkpoint_places.h"
#include "train/run/run_data.h"
#include "train/run/run_state.h"
#include "train/run/trainer_context.h"
#include "train/step/setup.h"
#include "train/step/step_record.h"

namespace welkin::train {

inline constexpr const char* kSpikeGroup = "spikes";

class RunCheckpoints {
 public:
  // All references outlive it.
  RunCheckpoints(const TrainerContext& context, std::filesystem::path folder, TrainSetup& setup, EpochMeter& meter, RunData& data,
                 RunState& state, c10::Device device);

  // Continues from the newest good checkpoint if the run resumes, else loads the weights of `init_from` if there are any. Every
  // rank calls it. CheckpointError, DataError for a checkpoint that does not fit the run.
  void start_or_resume();
  // The weights of `init_from`, if there is one. Every rank calls it.
  void load_initial_weights();
  // Puts checkpoints of later steps than the present one aside: they belong to another continuation. From now on kept ones are
  // read again, if the run asks for it. Every rank calls it.
  void claim();

  // True if a round of an elastic run can take its state from the memory of a rank; the same on all.
  bool carries() const;
  // For an elastic run: the state that this rank takes into the next round; null if the state is shared out. Exchanges nothing.
  std::unique_ptr<CarriedState> carry();

  // Saves into the run's folder, or into the first other place that takes it, and returns when the checkpoint is whole. False
  // on the first rank for another place. Every rank calls it; the first one throws if no place takes it.
  bool save();
  // True if the weights of the present step are the best so far, by this value. Waits for the best checkpoint before: it does
  // not count if it could not be saved. Every rank calls it.
  bool note_best(double value);
  // Saves if the step or the validation asks for it. Errors are logged, and the run goes on. Every rank calls it.
  void save_if_due(bool is_best);
  // For a checkpoint that is being written beside training: has_written() of this rank; between two steps, of all ranks.
  bool has_written() const { return writer_.has_written(); }
  void collect(bool all_have_written) { writer_.collect(all_have_written); }
  std::vector<std::filesystem::path> take_saved() { return writer_.take_saved(); }
  // Checkpoints that were found damaged when they were read again. On the first rank.
  std::vector<std::filesystem::path> take_damaged() { return verifier_ ? verifier_->take_damaged() : decltype(take_saved())(); }
  // Waits for the checkpoint that is being written. Every rank calls it.
  void finish() { writer_.finish(); }
  void prune() { places_.prune(); }
  std::string newest() const;  // the folder; empty if there is none
  const std::string& resumed_from() const { return resumed_from_; }
  double save_seconds() const { return writer_.save_seconds(); }                            // of the latest, on the first rank
  std::vector<std::string> summary() const;                                                 // lines for the log
  int64_t interval() const { return agreed_ ? agreed_->steps() : places_.own().interval; }  // of the run's folder, steps
  // The expected goodput if the run chooses the interval, on the first rank; 0: not known.
  double expected_goodput() const { return agreed_ ? agreed_->goodput() : 0; }

 private:
  std::optional<Checkpoint> find();
  void check_none(size_t damaged) const;
  std::vector<CheckpointGroup> own_groups();
  TensorLayout tensor_layout() const;
  void check_replicas();
  std::vector<CheckpointGroup> groups_to_save();
  bool has_replicas() const { return context_.world.size() > 1 && !config_.parallel.noddp; }
  std::optional<ReplicaVote> vote_beside();
  void compare_replicas(const std::function<void()>& compare) const;
  SaveTask task_for(std::vector<CheckpointPlace*> places, bool is_best);
  bool is_due(const CheckpointPlace& place) const;
  std::vector<CheckpointPlace*> due_places(bool is_best);
  void choose_interval();
  bool lacks(const Checkpoint& checkpoint, const CheckpointGroup& group) const;
  CheckpointIndex index() const;
  std::string best_metric_name() const;
  BestRecord best_record() const;
  void check_rules(const Checkpoint& checkpoint) const;
  void settle_best();
  void find_best();
  void load_judgement(const CheckpointIndex& index);
  void load(const Checkpoint& checkpoint);
  void load_imported(const Checkpoint& checkpoint);
  bool take_carried();
  int64_t step_in_epoch(const CheckpointIndex& index) const;
  void go_on_from(const CheckpointIndex& index);
  void load_optimizer(const Checkpoint& checkpoint, const CheckpointGroup& group);

  const TrainerContext& context_;
  const config::RunConfig& config_;
  std::filesystem::path times_file_;  // of a run that chooses its interval
  CheckpointPlaces places_;
  TrainSetup& setup_;
  EpochMeter& meter_;
  RunData& data_;
  RunState& state_;
  c10::Device device_;
  std::string resumed_from_;
  CheckpointWriter writer_;
  struct UnsavedBest {
    int64_t step = 0;
    std::optional<double> value_before;
    std::optional<int64_t> step_before;
  };
  std::optional<UnsavedBest> unsaved_best_;       // until it is known to be saved
  std::optional<AgreedInterval> agreed_;          // nothing if the intervals are given
  std::unique_ptr<BackgroundVerifier> verifier_;  // null unless verify_interval is given
};

}  // namespace welkin::train
