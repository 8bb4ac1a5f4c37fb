// SPDX-License-Identifier: Apache-2.0
// What a run is given by the program, and what it gives back.
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

// Where a run is: a step that was made, of those of the whole run, in an epoch (from 1).
struct ReachedStep {
  int64_t step = 0, total_steps = 0, epoch = 0;
};

// What a program that runs the trainer within itself is told, on the loop's thread. It changes nothing of the run.
class RunListener {
 public:
  RunListener() = default;
  RunListener(const RunListener&) = delete;
  RunListener& operator=(const RunListener&) = delete;
  virtual ~RunListener() = default;
  virtual void stepped(const ReachedStep& at) = 0;  // waits for no device
  // After a validation: mean loss of the epoch's steps, loss over the validation data, learning rate of the last step.
  virtual void validated(const ReachedStep& at, double train_loss, double valid_loss, double rate) = 0;
};

// What it refers to outlives the run.
struct TrainerContext {
  config::Resolved resolved;  // the trainer puts a number in the place of an `auto`
  const Registries& registries;
  observe::Console& console;
  observe::RunLog& log;
  const InterruptWatch& interrupt;
  const parallel::World& world;
  std::string resume_command;  // what the user types to go on, for the line after an interrupt; empty: not known
  std::string init_from = {};  // a checkpoint of any format whose weights a run begins with; empty: from the seed
  interchange::InitialWeights initial_weights = {};  // how they are taken from it
  std::optional<TimeLimit> time_limit = {};          // of the first rank, which decides for all
  std::optional<LrRangeOptions> find_lr = {};        // test learning rates instead of training
  std::filesystem::path peak_file = {};              // where the peak that MFU refers to is kept; empty: nowhere
  bool measure_peak = false;                         // although one is kept
  ProfileOptions profile = {};
  observe::SpanSink* span_recorder = nullptr;        // hears every span of the run
  FaultInjector* faults = nullptr;                   // makes faults happen; a listener of its spans where it needs them
  ElasticRound* elastic = nullptr;                   // ranks may come and go
  RunListener* listener = nullptr;                   // hears how far the run is
  std::string benchy_file = {};                      // what BENCHY_CONFIG_FILE names; empty: benchy's defaults
  std::function<void(const std::string&)> say = {};  // a line for stdout: benchy's
  // Prints at once from any rank, since the others may be waiting for it. The log is used where it is empty.
  std::function<void(const std::string&)> say_now = {};

  // Ranks after which the run's folder is named.
  int64_t run_size() const { return elastic == nullptr ? world.size() : elastic->run_size; }
  void warn_at_once(const std::string& text) const { say_now ? say_now(text) : log.warning(text); }
};

struct RunOutcome {
  bool completed = false;  // false: interrupted, and saved
  bool regroups = false;   // then: it was left between two steps, for a round with other ranks
  int stop_signal = 0;     // then: the same on every rank; 0: the time limit
  int64_t iterations = 0;
  int64_t own_steps = 0;  // of these those since this process began or resumed the run
  std::filesystem::path folder;
  bool has_lost_records = false;  // a trace or a timeline could not be written; the log says why
};

}  // namespace welkin::train
