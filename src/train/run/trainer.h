// SPDX-License-Identifier: Apache-2.0
// A training run: sets up what the configuration names, steps, validates, saves, and stops where it should. What one step does is
// Step (step.h) and nothing else.
#pragma once

#include <c10/core/Device.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/resolve/resolve.h"
#include "core/signals.h"
#include "core/stopwatch.h"
#include "data/pipeline/pipeline.h"
#include "observe/log/progress.h"
#include "observe/log/run_log.h"
#include "parallel/comm/world.h"
#include "train/benchy/benchy.h"
#include "train/checkpoint/checkpoint_store.h"
#include "train/device/memory_limit.h"
#include "train/learn/registries.h"
#include "train/profile/profile_session.h"
#include "train/run/data_notes.h"
#include "train/run/journal.h"
#include "train/run/nonfinite_watch.h"
#include "train/run/run_folder.h"
#include "train/run/run_lock.h"
#include "train/run/validation.h"
#include "train/step/setup.h"
#include "train/step/step.h"
#include "train/step/step_record.h"

namespace welkin::train {

// What a run is given. All of it outlives the trainer.
struct TrainerContext {
  const config::Resolved& resolved;
  const Registries& registries;
  observe::Console& console;
  observe::RunLog& log;
  const InterruptWatch& interrupt;
  const parallel::World& world;
  std::string resume_command;  // what the user types to go on, for the line after an interrupt; empty: not known
  std::string init_from = {};  // a checkpoint of any format whose weights a run begins with; empty: from the seed
  ProfileOptions profile = {};
  observe::SpanSink* span_recorder = nullptr;        // hears every span of the run
  std::string benchy_file = {};                      // what BENCHY_CONFIG_FILE names; empty: benchy's defaults
  std::function<void(const std::string&)> say = {};  // a line for stdout: benchy's
  // What a rank must say at once, the first or not: the others may be waiting for it. The log where it is empty.
  std::function<void(const std::string&)> say_now = {};
};

struct RunOutcome {
  bool completed = false;  // false: interrupted, and saved
  int64_t iterations = 0;
  std::filesystem::path folder;
  bool has_lost_records = false;  // a trace or a timeline could not be written; the log says why
};

class Trainer {
 public:
  explicit Trainer(TrainerContext context);
  ~Trainer();

  // The whole run; every rank calls it. Throws ConfigError, DataError, CheckpointError, NonFiniteError, MemoryError; CommError
  // when another rank does not go along; Interrupted when a signal came and nothing could be saved.
  RunOutcome run();

 private:
  RunOutcome run_to_the_end();
  // Where the tensors' memory is (trainer_memory.cpp), and the error of a limit with that in it.
  MemoryError out_of_memory(const MemoryError& found);

  // Set-up, in this order (trainer_setup.cpp).
  void open_datasets(parallel::MeshGroups groups);
  void open_folder();
  SetupSource setup_source() const;
  void start_profile();
  int64_t place_in_run() const { return position_.epoch * length_.steps_per_epoch + position_.step_in_epoch; }
  std::function<void(const std::string&)> spoken();  // TrainerContext::say_now, or warnings of the log
  ReadingEvents reading_events();
  void start_loader();
  void build_setup();
  void build_step();
  std::optional<Checkpoint> find_checkpoint();
  std::optional<Checkpoint> choose_checkpoint();
  void start_or_resume();
  void report_ranks();
  void report_setup();
  void report_initial_losses();
  double first_batch_loss();
  model::ModelCost report_model();

  // The loop (trainer.cpp).
  void train_epoch();
  void finish_epoch();
  void begin_next_epoch();
  bool validate();
  bool epoch_is_complete() const;
  bool all_steps_done() const { return position_.iteration >= length_.total_steps; }
  bool is_finished() const { return all_steps_done() && !epoch_is_complete(); }
  bool interrupted() const { return context_.world.size() == 1 ? context_.interrupt.requested() : stop_agreed_; }
  void agree_to_stop();
  EpochReport epoch_report() const;
  RunOutcome finish();
  RunOutcome stop_early();

  // Around one step (trainer_step.cpp), which is step.h's.
  StepRecord train_step();
  void read_requests(const StepRecord& record);
  data::Batch next_batch();
  void check_replicas_if_due();
  void after_forward(const data::Batch& batch, const at::Tensor& prediction);
  bool logs_this_step() const;   // the memory after the forward pass
  bool draws_this_step() const;  // what the model made of a sample
  void keep_picture(const data::Batch& batch, const at::Tensor& prediction);

  // benchy (trainer_benchy.cpp).
  void prepare_benchy();
  double benchy_now() const;
  void run_trial(const BenchyTrial& trial, const Step::Source& next, const std::function<void(const Step::Source&)>& work);
  void run_benchy_io();
  void step_from(const Step::Source& next);
  void run_benchy_epoch(const BenchyTrial& trial);
  RunOutcome run_benchy();
  void finish_benchy();

  // Checkpoints (trainer_checkpoint.cpp).
  std::vector<CheckpointGroup> checkpoint_groups();
  CheckpointGroup state_group();
  std::vector<CheckpointGroup> whole_groups();
  void store_whole(std::vector<CheckpointGroup> groups);
  CheckpointIndex checkpoint_index() const;
  void save();
  void save_if_due(bool is_best);
  void check_rules(const Checkpoint& checkpoint) const;
  void load(const Checkpoint& checkpoint);
  void load_imported(const Checkpoint& checkpoint);
  void load_initial_weights();
  std::string last_checkpoint() const;

  TrainerContext context_;
  const config::RunConfig& config_;
  RunFolder folder_;
  std::optional<RunLock> lock_;  // of the first rank
  std::string folder_note_;      // what a resumed run has changed; for the log, which opens later
  CheckpointStore store_;
  c10::Device device_ = c10::kCPU;
  Layout layout_;
  std::unique_ptr<TrainSetup> setup_;

  std::unique_ptr<data::Dataset> train_data_, valid_data_;
  std::vector<data::FileFingerprint> data_files_;  // as they were opened: a file that is damaged later is no part of the run
  DataNotes data_notes_;
  std::unique_ptr<ProfileSession> profile_;  // before the pipeline, whose threads use its tracer
  std::unique_ptr<data::Pipeline> pipeline_;
  std::unique_ptr<Step> step_;
  std::unique_ptr<Benchy> benchy_;  // in the place of the loop over epochs
  Stopwatch benchy_watch_;
  std::unique_ptr<EpochMeter> meter_;
  std::unique_ptr<Validator> validator_;
  std::unique_ptr<NonFiniteWatch> nonfinite_;
  std::unique_ptr<Journal> journal_;

  RunLength length_;
  int64_t samples_per_epoch_ = 0;
  RunPosition position_;
  bool resumed_ = false;
  bool stop_agreed_ = false;  // of many ranks: one of them has received a signal
  at::Tensor last_rate_;      // () of the last step
  std::optional<FieldPair> picture_;
  std::optional<double> validation_loss_;  // of the present weights
  std::optional<double> best_loss_;
  double peak_flops_ = 0;
  double train_flops_ = 0;    // per sample
  int64_t buffer_bytes_ = 0;  // of batches in the loaders, where memory is counted

  // Of this process and epoch: times are no part of the state.
  double epoch_seconds_ = 0;
  int64_t epoch_steps_ = 0;
  int64_t epoch_samples_ = 0;
};

}  // namespace welkin::train
