// SPDX-License-Identifier: Apache-2.0
// A span sink that stores spans and writes a Chrome trace (chrome://tracing, ui.perfetto.dev).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "observe/timeline/span.h"
#include "observe/timeline/timeline_picture.h"

namespace welkin::observe {

struct TimelineOptions {
  int rank = 0;                   // the process number in the trace
  size_t max_events = 1'000'000;  // about 60 MB; later spans are only counted
};

class Timeline : public SpanSink {
 public:
  explicit Timeline(TimelineOptions options = {}) : options_(options), start_(SpanClock::now()) {}

  void begin(std::string_view) noexcept override {}
  void end(std::string_view name, SpanClock::time_point began) noexcept override;
  void record(std::string_view lane, std::string_view name, SpanClock::time_point began,
              SpanClock::time_point ended) noexcept override;

  size_t num_events() const;
  size_t num_dropped() const;

  // Spans that have ended so far, with the names of their lanes: threads, and activity beside them.
  TimelineSpans spans() const;

  // Writes the same as a Chrome trace, atomically. Throws DataError.
  void write(const std::filesystem::path& path) const;

 private:
  struct Event {
    std::string name;
    int lane;  // in the order in which lanes first had a span
    double begin_us;
    double length_us;
  };
  struct Lane {
    std::string name;
    bool is_thread;  // its spans nest; those of other lanes may overlap
  };
  void add(std::string_view name, int lane, SpanClock::time_point began, SpanClock::time_point ended);  // needs the mutex
  int thread_number();                                                                                  // needs the mutex
  int lane_number(std::string_view name);                                                               // needs the mutex

  TimelineOptions options_;
  SpanClock::time_point start_;
  mutable std::mutex mutex_;
  std::vector<Event> events_;
  std::map<std::thread::id, int> threads_;
  std::map<std::string, int, std::less<>> others_;
  std::vector<Lane> lanes_;  // by number
  size_t dropped_ = 0;
};

}  // namespace welkin::observe
