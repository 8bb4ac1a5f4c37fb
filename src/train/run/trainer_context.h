// SPDX-License-Identifier: Apache-2.0
// The inputs of a run from the program, and its results.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "config/resolve/resolve.h"
#include "core/process/signals.h"
#include "observe/log/progress.h"
#include "observe/log/run_log.h"
#include "observe/timeline/span.h"
#include "parallel/comm/world.h"
#include "train/elastic/elastic_round.h"
#include "train/inject/fault_injector.h"
#include "train/interchange/initial_weights.h"
#include "train/learn/registries.h"
#include "train/monitor/lr_range.h"
#include "train/monitor/time_limit.h"
#include "train/profile/profile_session.h"

namespace welkin::train {

// The position of a run: a step that was made, out of all steps of the run, in an epoch (from 1).
struct ReachedStep {
  int64_t step = 0, total_steps = 0, epoch = 0;
};

// A program that runs the trainer within itself implements it. Called on the loop's thread. It changes nothing of the run.
class RunListener {
 public:
  RunListener() = default;
  RunListener(const RunListener&) = delete;
  RunListener& operator=(const RunListener&) = delete;
  virtual ~RunListener() = default;
  virtual void stepped(const ReachedStep& at) = 0;  // waits for no device
  // Called after a validation: mean loss of the epoch's steps, validation loss, learning rate of the last step.
  virtual void validated(const ReachedStep& at, double train_loss, double valid_loss, double rate) = 0;
};

// The objects that it refers to outlive the run.
struct TrainerContext {
  config::Resolved resolved;  // the trainer replaces an `auto` by a number
  const Registries& registries;
  observe::Console& console;
  observe::RunLog& log;
  const InterruptWatch& interrupt;
  const parallel::World& world;
  std::string resume_command;  // the command that continues the run, for the line after an interrupt; empty: not known
  std::string init_from = {};  // a checkpoint of any format whose weights a run begins with; empty: from the seed
  interchange::InitialWeights initial_weights = {};  // how its weights are taken
  std::optional<TimeLimit> time_limit = {};          // of the first rank, which decides for all
  std::optional<LrRangeOptions> find_lr = {};        // test learning rates instead of training
  std::filesystem::path peak_file = {};              // the file with the peak that MFU refers to; empty: none
  bool measure_peak = false;                         // measure even if one is kept
  ProfileOptions profile = {};
  observe::SpanSink* span_recorder = nullptr;        // receives every span of the run
  FaultInjector* faults = nullptr;                   // makes faults happen; it listens to spans if it needs them
  ElasticRound* elastic = nullptr;                   // ranks may come and go
  RunListener* listener = nullptr;                   // receives the run's progress
  std::string benchy_file = {};                      // the value of BENCHY_CONFIG_FILE; empty: benchy's defaults
  std::function<void(const std::string&)> say = {};  // a line for stdout: benchy's
  // Prints at once from any rank, since the others may be waiting for it. If it is empty, the log is used.
  std::function<void(const std::string&)> say_now = {};

  // The number of ranks in the name of the run's folder.
  int64_t run_size() const { return elastic == nullptr ? world.size() : elastic->run_size; }
  void warn_at_once(const std::string& text) const { say_now ? say_now(text) : log.warning(text); }
};

struct RunOutcome {
  bool completed = false;  // false: interrupted, and saved
  bool regroups = false;   // if not completed: the run was left between two steps, for a round with other ranks
  int stop_signal = 0;     // if not completed: equal on every rank; 0: the time limit
  int64_t iterations = 0;
  int64_t own_steps = 0;  // those of `iterations` since this process began or resumed the run
  std::filesystem::path folder;
  bool has_lost_records = false;  // a trace or a timeline could not be written; the log says why
};

}  // namespace welkin::train
