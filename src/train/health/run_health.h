// SPDX-License-Identifier: Apache-2.0
// What a run notices about itself and tells programs: events.jsonl, status.json and metrics.prom in its folder, spikes and the
// way back from them. Every rank has one; the first rank writes.
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

// What it works on. All of it outlives it.
struct HealthParts {
  const config::RunConfig& config;
  const parallel::World& world;
  observe::RunLog& log;
  TrainSetup& setup;
  std::filesystem::path folder;       // of the run
  PhaseTimes* phase_times = nullptr;  // null: ranks are not compared
  // The samples of a step, of all ranks.
  std::function<std::vector<int64_t>(const StepRecord&)> samples_of;
};

// How far the run is.
struct RunProgress {
  int64_t step = 0, total_steps = 0;
  int64_t epoch = 0;  // from 1
};

class RunHealth {
 public:
  explicit RunHealth(const HealthParts& parts);

  // Trouble is told to `on_trouble` besides, with its name and step: TensorBoard.
  void tell(std::function<void(const std::string&, int64_t)> on_trouble) { on_trouble_ = std::move(on_trouble); }

  // A line of events.jsonl. Of what all ranks see the first one's counts; `of_this_rank`: what one rank alone knows.
  void event(std::string_view name, int64_t step, const observe::EventFields& fields = {}, bool of_this_rank = false);
  void trouble(std::string_view name, int64_t step, const observe::EventFields& fields);

  // Before the first step of this process. `resumed_from`: empty where the run begins; `newest`: the folder of the newest
  // checkpoint, empty where there is none. Every rank calls it, as those below.
  void begin(const RunProgress& progress, const std::string& resumed_from, const std::string& newest);
  // After a step. Waits for the device where something is due, and after every step under on_spike.
  void add_step(const StepRecord& record, const RunProgress& progress);
  // Within what takes long, validation for one: this rank's status, where it is due.
  void write_if_due();
  // After a checkpoint may have been saved: its folder. Told once.
  void saved(const std::string& newest);
  // Steps between checkpoints, 0: none on the way; and the goodput to expect, 0: not known.
  void saves_every(int64_t steps, double goodput);
  // At the end of this process's part: "finished", "interrupted" or "failed", and then why.
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
  std::vector<std::string> hosts_;    // of the ranks, where they are compared
  at::Tensor last_loss_, last_rate_;  // () of the latest step, on the device
  Stopwatch since_status_;
  Stopwatch since_begin_;
  int64_t first_step_ = 0;       // of this process
  int64_t samples_ = 0;          // since the last status
  bool status_failing_ = false;  // it could not be written, which was said
};

// Of a run that failed before there was anything to have the health of, in a folder that is its own: what stands there is of an
// earlier process.
void write_failed_start(const config::HealthConfig& config, const std::filesystem::path& folder, const parallel::World& world,
                        const std::string& error);

}  // namespace welkin::train
