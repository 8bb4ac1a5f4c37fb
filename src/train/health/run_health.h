// SPDX-License-Identifier: Apache-2.0
// Health of a run, for programs that watch it: events.jsonl, status.json and metrics.prom in its folder; detection of spikes,
// and the rollback after them. Every rank has one; the first rank writes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema/run_config.h"
#include "core/stopwatch.h"
#include "observe/log/event_log.h"
#include "observe/log/run_log.h"
#include "observe/log/run_status.h"
#include "parallel/comm/world.h"
#include "train/health/kept_state.h"
#include "train/health/phase_times.h"
#include "train/step/setup.h"
#include "train/step/step_record.h"

namespace welkin::train {

// The parts of a run that RunHealth reads and changes. All of them outlive it.
struct HealthParts {
  const config::RunConfig& config;
  const parallel::World& world;
  observe::RunLog& log;
  TrainSetup& setup;
  std::filesystem::path folder;       // of the run
  PhaseTimes* phase_times = nullptr;  // null: ranks are not compared
  // The numbers of all ranks' samples of a step.
  std::function<std::vector<int64_t>(const StepRecord&)> samples_of;
};

// Progress of the run.
struct RunProgress {
  int64_t step = 0, total_steps = 0;
  int64_t epoch = 0;  // from 1
};

class RunHealth {
 public:
  explicit RunHealth(const HealthParts& parts);

  // `on_trouble` also gets the name and step of each trouble: TensorBoard.
  void tell(std::function<void(const std::string&, int64_t)> on_trouble) { on_trouble_ = std::move(on_trouble); }

  // Adds a line to events.jsonl. The first rank writes events that all ranks see; `of_this_rank`: one rank alone sees it.
  void event(std::string_view name, int64_t step, const observe::EventFields& fields = {}, bool of_this_rank = false);
  void trouble(std::string_view name, int64_t step, const observe::EventFields& fields);

  // Called before the first step of this process. `resumed_from` is empty if the run begins; `newest` is the folder of the
  // newest checkpoint, empty if there is none. Every rank calls it, and the functions below.
  void begin(const RunProgress& progress, const std::string& resumed_from, const std::string& newest);
  // Called after a step. Waits for the device if something is due, and after every step under on_spike.
  void add_step(const StepRecord& record, const RunProgress& progress);
  // Called during long work such as validation: writes this rank's status if it is due.
  void write_if_due();
  // Called after a checkpoint may have been saved, with its folder. Each is reported once.
  void saved(const std::string& newest);
  // `steps` between checkpoints (0: none on the way), and the expected goodput (0: not known).
  void saves_every(int64_t steps, double goodput);
  // Called at the end of this process's part with "finished", "interrupted" or "failed"; with "failed" also the reason.
  void end(const std::string& state, const std::string& error = "");

 private:
  void look_for_spike(const StepRecord& record);
  void roll_back(const StepRecord& record);
  void learn_hosts();
  void compare_ranks(int64_t step);
  void read_last_step();
  void write_status();

  const config::HealthConfig& config_;
  HealthParts parts_;
  observe::EventLog events_;
  observe::RunStatus status_;
  std::function<void(const std::string&, int64_t)> on_trouble_;
  KeptState kept_;
  std::vector<std::string> hosts_;    // of the ranks, if they are compared
  at::Tensor last_loss_, last_rate_;  // () of the latest step, on the device
  Stopwatch since_status_;
  Stopwatch since_begin_;
  int64_t first_step_ = 0;       // of this process
  int64_t samples_ = 0;          // since the last status
  bool status_failing_ = false;  // a failed write was reported
};

// Reports a run that failed before it had a RunHealth. `folder` belongs to this run: files in it are of an earlier process and
// are replaced.
void write_failed_start(const config::HealthConfig& config, const std::filesystem::path& folder, const parallel::World& world,
                        const std::string& error);

}  // namespace welkin::train
