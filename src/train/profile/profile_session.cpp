// SPDX-License-Identifier: Apache-2.0
#include "train/profile/profile_session.h"

#include <unistd.h>

#include <atomic>
#include <chrono>

#include "core/error.h"
#include "core/file.h"
#include "core/process/host.h"
#include "core/text.h"
#include "observe/timeline/timeline_picture.h"
#include "train/profile/operator_table.h"

namespace welkin::train {
namespace {

// The windows of the tutorials' programs: epoch index 3 in SC22's, 1 in SC21's, iterations 0 to 59. The others have no window
// of their own.
constexpr int64_t kTutorialSteps = 59;

// Span name for beginning and writing a trace, which takes as long as many steps; a timeline leaves it out of the run's time.
// It is recorded afterwards: an open span would end in a profiler that is gone.
constexpr const char* kProfilerSpan = "profiler";

std::optional<int64_t> window_epoch(const ProfileOptions& options, const config::RunConfig& config) {
  if (options.epoch || !config.switches.enable_manual_profiling) return options.epoch;
  return config.tutorial == config::Tutorial::Sc21 ? 1 : 3;
}

std::vector<int64_t> window_steps(const ProfileOptions& options, const config::RunConfig& config) {
  if (!options.steps.empty() || !config.switches.enable_manual_profiling) return options.steps;
  return {0, kTutorialSteps};
}

// A window without a profiler or timeline is for NVIDIA's tools; without a GPU the timeline stands in for them.
bool asks_for_window_alone(const ProfileOptions& options, const config::RunConfig& config) {
  if (config.switches.enable_manual_profiling) return true;
  return options.profile.empty() && (options.epoch || !options.steps.empty());
}

int64_t wall_milliseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

class ProfileSession::Gate : public observe::SpanSink {
 public:
  explicit Gate(observe::SpanSink& behind) : behind_(behind) {}
  void set(bool open) { is_open_.store(open, std::memory_order_relaxed); }

  void begin(std::string_view name) noexcept override {
    if (is_open_.load(std::memory_order_relaxed)) behind_.begin(name);
  }
  void end(std::string_view name, observe::SpanClock::time_point began) noexcept override {
    if (is_open_.load(std::memory_order_relaxed)) behind_.end(name, began);
  }
  void record(std::string_view lane, std::string_view name, observe::SpanClock::time_point began,
              observe::SpanClock::time_point ended) noexcept override {
    if (is_open_.load(std::memory_order_relaxed)) behind_.record(lane, name, began, ended);
  }

 private:
  observe::SpanSink& behind_;
  std::atomic<bool> is_open_ = false;
};

ProfileSession::ProfileSession(const ProfileOptions& options, const config::RunConfig& config, Place place,
                               observe::SpanSink* recorder)
    : place_(std::move(place)),
      is_profiled_(!options.profile.empty() && place_.is_main),
      is_manual_(config.switches.enable_manual_profiling || options.epoch || !options.steps.empty()),
      is_timed_(options.timeline || (asks_for_window_alone(options, config) && !place_.with_gpu)),
      epoch_(window_epoch(options, config)),
      steps_(window_steps(options, config)) {
  if (is_profiled_) schedule_ = parse_profile_schedule(options.profile);
  if (is_timed_) {
    timeline_ = std::make_unique<observe::Timeline>(observe::TimelineOptions{.rank = place_.rank});
    gate_ = std::make_unique<Gate>(*timeline_);
    tracer_.add_sink(*gate_);
  }
  if (is_profiled_) tracer_.add_sink(kineto_);
  if (has_nvtx() && place_.with_gpu) tracer_.add_sink(nvtx_);
  if (recorder != nullptr) tracer_.add_sink(*recorder);
}

ProfileSession::~ProfileSession() = default;

void ProfileSession::plan(const RunPlaces& run) {
  steps_per_epoch_ = run.steps_per_epoch;
  if (!is_profiled_ && !is_timed_ && !is_manual_) return;
  window_ = step_window(epoch_, steps_, run);
  const auto in_epoch = [&](int64_t at) { return at % run.steps_per_epoch; };
  place_.log(cat("Profiling epoch ", window_.begin / run.steps_per_epoch, ", steps ", in_epoch(window_.begin), " to ",
                 in_epoch(window_.end - 1), window_.note.empty() ? "" : ": ", window_.note));
  const int64_t steps = window_.end - window_.begin;
  const ProfileSchedule wanted = schedule_;
  schedule_ = fitted(schedule_, steps);
  if (is_profiled_ && (schedule_.wait != wanted.wait || schedule_.warmup != wanted.warmup || schedule_.active != wanted.active)) {
    place_.log(cat("The profiler's schedule is cut to ", steps, " steps: wait=", schedule_.wait, ",warmup=", schedule_.warmup,
                   ",active=", schedule_.active));
  }
}

void ProfileSession::open() {
  is_open_ = true;
  if (is_manual_ && place_.with_gpu) start_cuda_profiler();
  if (gate_) gate_->set(true);
}

// Profiles are only for people to look at: a disk that refuses one does not end the run, which keeps what it trained.
void ProfileSession::lose(const std::string& why) {
  has_lost_ = true;
  place_.warn(why);
}

void ProfileSession::close() {
  is_open_ = false;
  if (is_manual_ && place_.with_gpu) stop_cuda_profiler();
  if (trace_ && !was_warming_up_) save_trace();
  trace_.reset();
  if (!gate_) return;
  gate_->set(false);
  write_timeline();
}

void ProfileSession::write_timeline() {
  const observe::TimelineSpans spans = timeline_->spans();
  try {
    make_folders(place_.folder);
    const auto stem = cat("timeline", place_.rank == 0 ? "" : cat("_rank", place_.rank));
    timeline_->write(place_.folder / (stem + ".json"));
    write_file_atomically(place_.folder / (stem + ".svg"), observe::timeline_svg(spans));
    place_.log(cat("Timeline: ", observe::shares_line(observe::timeline_shares(spans)), "; ", (place_.folder / stem).string(),
                   ".svg and .json (ui.perfetto.dev)"));
  } catch (const Error& error) {
    lose(error.what());
  }
}

void ProfileSession::save_trace() {
  const auto began = observe::SpanClock::now();
  const auto path = place_.folder / trace_file_name(host_name(), getpid(), wall_milliseconds());
  try {
    const auto calls = trace_->save(path);
    place_.log(cat("Profile: ", path.string(), "\n", operator_table(summarise(calls))));
  } catch (const Error& error) {
    lose(error.what());
  }
  trace_.reset();
  tracer_.record("", kProfilerSpan, began, observe::SpanClock::now());
}

void ProfileSession::start_trace() {
  const auto began = observe::SpanClock::now();
  trace_.reset();
  trace_ = std::make_unique<KinetoTrace>(place_.with_gpu);
  tracer_.record("", kProfilerSpan, began, observe::SpanClock::now());
}

// The warm-up fills the profiler's own buffers; its trace is discarded.
void ProfileSession::move_profiler(ProfilePhase phase) {
  const bool is_recording = phase == ProfilePhase::Record || phase == ProfilePhase::RecordAndSave;
  if (phase == ProfilePhase::Warmup && !trace_) start_trace();
  if (is_recording && (!trace_ || was_warming_up_)) start_trace();
  was_warming_up_ = phase == ProfilePhase::Warmup;
}

void ProfileSession::begin_step(int64_t place) {
  if (!active()) return;
  if (!is_open_ && window_.contains(place)) open();
  if (is_open_ && is_profiled_) {
    phase_ = phase_of(schedule_, next_index_);
    move_profiler(phase_);
    profiler_step_ = cat("ProfilerStep#", next_index_++);  // the name by which TensorBoard's plug-in finds the steps
    kineto_.begin(profiler_step_);
  }
  step_span_ = std::make_unique<observe::Span>(&tracer_, "step", place % steps_per_epoch_);
}

void ProfileSession::end_step(int64_t place) {
  step_span_.reset();
  if (!is_open_) return;
  if (is_profiled_) {
    kineto_.end(profiler_step_, {});
    if (phase_ == ProfilePhase::RecordAndSave) save_trace();
  }
  if (place + 1 >= window_.end) close();
}

void ProfileSession::finish() {
  if (!is_open_) return;
  close();
}

}  // namespace welkin::train
