// SPDX-License-Identifier: Apache-2.0
// The loop of a run: steps, ends of epochs with their validation and checkpoints, and stopping at the end or after a signal.
// One step is the work of Step (train/step/step.h) alone.
#pragma once

#include <c10/core/Device.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "observe/log/progress.h"
#include "train/health/run_health.h"
#include "train/monitor/early_stop.h"
#include "train/monitor/validation_metric.h"
#include "train/profile/profile_session.h"
#include "train/run/nonfinite_watch.h"
#include "train/run/run_checkpoints.h"
#include "train/run/run_data.h"
#include "train/run/run_report.h"
#include "train/run/run_state.h"
#include "train/run/trainer_context.h"
#include "train/run/validation.h"
#include "train/step/setup.h"
#include "train/step/step.h"
#include "train/step/step_record.h"

namespace welkin::train {

// The parts of a run that a loop uses. All of them outlive the loop.
struct LoopParts {
  const TrainerContext& context;
  TrainSetup& setup;
  RunData& data;
  RunState& state;
  EpochMeter& meter;
  ProfileSession& profile;
  RunCheckpoints& checkpoints;
  RunHealth& health;
  RunReport& report;
  Validator& validator;
  c10::Device device;
};

class RunLoop {
 public:
  explicit RunLoop(const LoopParts& parts);

  // Runs from the state's position to the end of the run, or to a signal; then saves a checkpoint. True at the end. Every rank
  // calls it. Throws Interrupted when a signal came and nothing could be saved.
  bool run();

  // True if the ranks of an elastic run have agreed to leave between two steps, for a round with other ranks.
  bool regroups() const { return regroup_agreed_; }
  bool interrupted() const { return context_.world.size() == 1 ? wants_stop() : stop_agreed_; }
  // The signal of an interrupted run: SIGINT if any rank got it; 0 if the time limit ends the run. Every rank calls it.
  int stop_signal() const;
  // Makes one step that belongs to no epoch.
  void step_from(const Step::Source& next);

 private:
  void report_initial_losses();
  double first_batch_loss();
  void train_epoch();
  StepRecord train_step();
  void follow_curriculum();
  data::Batch next_batch();
  RunProgress reached() const;
  ReachedStep reached_step() const;
  void note_nonfinite(const std::string& event, const StepRecord& record);
  void read_requests(const StepRecord& record);
  void tell_saved();
  bool goes_on() const { return !interrupted() && !regroup_agreed_; }
  bool has_samples();
  bool others_wait() const { return context_.elastic != nullptr && context_.elastic->is_requested(); }
  bool wants_stop() const { return context_.interrupt.requested() || out_of_time_; }
  void look_at_time();
  void check_replicas_if_due();
  observe::ProgressOptions progress_options() const;
  void finish_epoch();
  bool validate();
  void judge(const ValidationReport& report);
  void stop_early_if_due(bool is_full_epoch);
  void agree_to_stop();
  void say_nothing_is_left() const;
  void finish();
  void save_for_next_round();
  void say_checkpoints();
  void stop_interrupted();

  const TrainerContext& context_;
  const config::RunConfig& config_;
  LoopParts parts_;
  RunState& state_;
  std::unique_ptr<Step> step_;
  NonFiniteWatch nonfinite_;
  ValidationMetric best_metric_;
  std::optional<ValidationMetric> stopping_metric_;
  std::optional<EarlyStop> early_stop_;
  double best_candidate_ = 0, stopping_value_ = 0;  // of the latest validation
  double epoch_end_s_ = 0;                          // duration of the latest end of an epoch
  double longest_step_s_ = 0;                       // of this process
  bool out_of_time_ = false;                        // on the first rank: the time limit ends the run
  bool stop_agreed_ = false;                        // with many ranks: one of them wants to stop
  bool regroup_agreed_ = false;
};

}  // namespace welkin::train
