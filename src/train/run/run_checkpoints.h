// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a run: what they hold, when one is saved, and how a run continues from one. Where tensors are split over
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

  // Continues from the newest good checkpoint where the run resumes, else takes the weights of `init_from`, else nothing. Every
  // rank calls it. CheckpointError, DataError for a checkpoint that does not fit the run.
  void start_or_resume();
  // The weights of `init_from`, if there is one. Every rank calls it.
  void load_initial_weights();
  // Checkpoints of steps beyond the present one are those of another continuation: they are put aside. From now on kept ones are
  // read again, where the run asks for it. Every rank calls it.
  void claim();

  // Whether a round of an elastic run can take its state from the memory of a rank; the same on all.
  bool carries() const;
  // Of an elastic run: what this rank takes into the next round; nothing where state is shared out. Exchanges nothing.
  std::unique_ptr<CarriedState> carry();

  // Whole when it returns, in the run's folder, or else in the first other place that takes it: then false, on the first rank.
  // Every rank calls it; the first one throws where no place takes it.
  bool save();
  // Whether the weights of the present step are the best so far, by this value. One that could not be saved does not count: it is
  // waited for. Every rank calls it.
  bool note_best(double value);
  // Where the step asks for one, or the validation. What goes wrong is logged, and the run goes on. Every rank calls it.
  void save_if_due(bool is_best);
  // Of a checkpoint that is being written beside training: has_written() of this rank, and of all between two steps.
  bool has_written() const { return writer_.has_written(); }
  void collect(bool all_have_written) { writer_.collect(all_have_written); }
  std::vector<std::filesystem::path> take_saved() { return writer_.take_saved(); }
  // That were found damaged when they were read again. On the first rank.
  std::vector<std::filesystem::path> take_damaged() { return verifier_ ? verifier_->take_damaged() : decltype(take_saved())(); }
  // Waits for it. Every rank calls it.
  void finish() { writer_.finish(); }
  void prune() { places_.prune(); }
  std::string newest() const;  // the folder; empty where there is none
  const std::string& resumed_from() const { return resumed_from_; }
  double save_seconds() const { return writer_.save_seconds(); }                            // of the latest, on the first rank
  std::vector<std::string> summary() const;                                                 // lines for the log
  int64_t interval() const { return agreed_ ? agreed_->steps() : places_.own().interval; }  // of the run's folder, steps
  // The goodput to expect where the run chooses the interval, on the first rank; 0: not known.
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
  std::optional<UnsavedBest> unsaved_best_;       // until it is known whether it was saved
  std::optional<AgreedInterval> agreed_;          // nothing where the intervals are given
  std::unique_ptr<BackgroundVerifier> verifier_;  // null unless verify_interval is given
};

}  // namespace welkin::train
