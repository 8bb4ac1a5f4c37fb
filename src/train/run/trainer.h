// SPDX-License-Identifier: Apache-2.0
// A training run: it sets up what the configuration names, in the order of run_to_the_end(), and hands over to the loop
// (run_loop.h). It finds every possible mistake of the user before anything is written.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <optional>
#include <string>

#include "parallel/comm/mesh_groups.h"
#include "train/device/memory_limit.h"
#include "train/device/process_settings.h"
#include "train/health/phase_times.h"
#include "train/nodes/run_lock.h"
#include "train/profile/profile_session.h"
#include "train/run/run_data.h"
#include "train/run/run_folder.h"
#include "train/run/run_state.h"
#include "train/run/trainer_context.h"
#include "train/step/layout.h"
#include "train/step/setup.h"

namespace welkin::train {

class Trainer {
 public:
  explicit Trainer(TrainerContext context);
  ~Trainer();

  // Runs to the end; every rank calls it. Throws ConfigError, DataError, CheckpointError, NonFiniteError, MemoryError;
  // CommError when another rank does not take part; Interrupted when a signal came and nothing could be saved.
  RunOutcome run();
  // For an elastic run, after run(): leaves this rank's state in the round, if it is whole and not shared out. It exchanges
  // nothing, so it works whatever became of the other ranks.
  void carry_state();

 private:
  RunOutcome run_to_the_end();
  void say_failed(const std::string& error);
  int64_t first_step() const;
  void check_and_open(parallel::MeshGroups groups);
  void open_folder();
  void choose_micro_batch();
  void start_profile();
  void make_setup();
  RunOutcome find_lr();
  void start_loop();
  void tell_round();
  MemoryError out_of_memory(const MemoryError& found) const;

  TrainerContext context_;
  const config::RunConfig& config_;
  std::optional<ProcessSession> session_;  // made before, and destroyed after, everything that computes
  RunFolder folder_;
  std::optional<RunLock> lock_;  // on the first rank
  std::string folder_note_;      // changes of a resumed run; for the log, which opens later
  c10::Device device_ = c10::kCPU;
  std::unique_ptr<PhaseTimes> phase_times_;  // null if ranks are not compared
  std::unique_ptr<ProfileSession> profile_;  // before the data, whose threads read ahead and report to it until they end
  RunData data_;
  Layout layout_;
  std::unique_ptr<TrainSetup> setup_;
  RunState state_;
  int64_t buffer_bytes_ = 0;  // of batches in the loaders, if memory is counted
  struct Running;             // objects around the set-up, up to the loop
  std::unique_ptr<Running> running_;
};

}  // namespace welkin::train
