// SPDX-License-Identifier: Apache-2.0
// The records that a run makes of itself: the spans of its steps and reading threads, and their listeners while the window is
// open: torch's profiler (--profile), our timeline (--timeline), NVIDIA's tools (--enable_manual_profiling). None of them
// changes a number.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "config/schema/run_config.h"
#include "observe/timeline/span.h"
#include "observe/timeline/timeline.h"
#include "train/profile/kineto_trace.h"
#include "train/profile/nvtx.h"
#include "train/profile/step_window.h"

namespace welkin::train {

class ProfileSession {
 public:
  struct Place {
    std::filesystem::path folder;  // traces and timelines go there; made when the first is written
    int rank = 0;
    bool is_main = true;                           // the first rank: only it writes traces
    bool with_gpu = false;                         // the run computes on a GPU
    std::function<void(const std::string&)> log;   // one line, or several
    std::function<void(const std::string&)> warn;  // gets failures to write, on any rank
  };

  // `recorder`, if there is one, receives every span of the run; it outlives the session.
  ProfileSession(const ProfileOptions& options, const config::RunConfig& config, Place place,
                 observe::SpanSink* recorder = nullptr);
  ~ProfileSession();
  ProfileSession(const ProfileSession&) = delete;
  ProfileSession& operator=(const ProfileSession&) = delete;

  // The tracer for every Span of the run; without a listener a span costs a branch. Its address stays.
  const observe::Tracer& tracer() const { return tracer_; }
  bool active() const { return is_profiled_ || is_timed_ || is_manual_ || tracer_.active(); }

  // Called once the length of the run is known: logs which steps are recorded.
  void plan(const RunPlaces& run);

  // Called around every training step, with its place in the run. Opening and closing the window wait only for the device.
  void begin_step(int64_t place);
  void end_step(int64_t place);
  void finish();  // the run ends: writes what is still open

  // True if a trace or a timeline could not be written so far.
  bool has_lost() const { return has_lost_; }

 private:
  // Passes spans on while the window is open.
  class Gate;

  void open();
  void close();
  void move_profiler(ProfilePhase phase);
  void start_trace();
  void save_trace();
  void write_timeline();
  void lose(const std::string& why);

  Place place_;
  bool is_profiled_, is_manual_, is_timed_;  // is_manual_: with a window for NVIDIA's tools
  std::optional<int64_t> epoch_;
  std::vector<int64_t> steps_;
  ProfileSchedule schedule_;
  StepWindow window_;
  int64_t steps_per_epoch_ = 1;
  bool is_open_ = false;
  bool has_lost_ = false;
  int64_t next_index_ = 0;  // of the profiler's schedule
  ProfilePhase phase_ = ProfilePhase::Off;
  bool was_warming_up_ = false;
  std::string profiler_step_;

  observe::Tracer tracer_;
  std::unique_ptr<observe::Timeline> timeline_;
  std::unique_ptr<Gate> gate_;
  KinetoSink kineto_;
  NvtxSink nvtx_;
  std::unique_ptr<KinetoTrace> trace_;
  std::unique_ptr<observe::Span> step_span_;
};

}  // namespace welkin::train
