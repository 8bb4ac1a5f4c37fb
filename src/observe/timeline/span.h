// SPDX-License-Identifier: Apache-2.0
// Named spans of time. Code marks its parts with a Span; the sinks of a Tracer are the listeners (our timeline, NVTX,
// Kineto). With a null or empty tracer a span costs one branch.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace welkin::observe {

using SpanClock = std::chrono::steady_clock;

// Methods are called on the span's thread; spans of one thread nest. Implementations are thread-safe and do not throw.
class SpanSink {
 public:
  virtual ~SpanSink() = default;
  virtual void begin(std::string_view name) noexcept = 0;
  virtual void end(std::string_view name, SpanClock::time_point began) noexcept = 0;
  // A finished span, as in Tracer::record. For sinks that can show past spans.
  virtual void record(std::string_view /*lane*/, std::string_view /*name*/, SpanClock::time_point /*began*/,
                      SpanClock::time_point /*ended*/) noexcept {}
};

// The listeners of a run. Sinks are added before threads start and outlive the tracer's use.
class Tracer {
 public:
  void add_sink(SpanSink& sink) { sinks_.push_back(&sink); }
  bool active() const { return !sinks_.empty(); }

  void begin(std::string_view name) const noexcept {
    for (SpanSink* sink : sinks_) sink->begin(name);
  }
  void end(std::string_view name, SpanClock::time_point began) const noexcept {
    for (SpanSink* sink : sinks_) sink->end(name, began);
  }
  // Records a finished span. `lane`: name for activity beside the threads, where spans may overlap; empty: the calling thread.
  void record(std::string_view lane, std::string_view name, SpanClock::time_point began,
              SpanClock::time_point ended) const noexcept {
    for (SpanSink* sink : sinks_) sink->record(lane, name, began, ended);
  }

 private:
  std::vector<SpanSink*> sinks_;
};

class Span {
 public:
  Span(const Tracer* tracer, std::string_view name) {
    if (tracer != nullptr && tracer->active()) open(*tracer, std::string(name));
  }
  // The name is "<name> <index>" or "<name> <detail>"; without listeners no text is made.
  Span(const Tracer* tracer, std::string_view name, int64_t index) {
    if (tracer != nullptr && tracer->active()) open(*tracer, std::string(name) + " " + std::to_string(index));
  }
  Span(const Tracer* tracer, std::string_view name, std::string_view detail) {
    if (tracer != nullptr && tracer->active()) open(*tracer, std::string(name) + " " + std::string(detail));
  }
  ~Span() { end(); }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

  // Ends the span before its scope does.
  void end() {
    if (tracer_ == nullptr) return;
    tracer_->end(name_, began_);
    tracer_ = nullptr;
  }

 private:
  void open(const Tracer& tracer, std::string name) {
    tracer_ = &tracer;
    name_ = std::move(name);
    tracer.begin(name_);
    began_ = SpanClock::now();
  }

  const Tracer* tracer_ = nullptr;
  std::string name_;
  SpanClock::time_point began_;
};

}  // namespace welkin::observe
