// SPDX-License-Identifier: Apache-2.0
// A span sink that remembers, and writes a Chrome trace (chrome://tracing, ui.perfetto.dev).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "observe/span.h"
#include "observe/timeline_picture.h"

namespace welkin::observe {

struct TimelineOptions {
  int rank = 0;                   // the process number in the trace
  size_t max_events = 1'000'000;  // about 60 MB; later spans are counted, not kept
};

class Timeline : public SpanSink {
 public:
  explicit Timeline(TimelineOptions options = {}) : options_(options), start_(SpanClock::now()) {}

  void begin(std::string_view) noexcept override {}
  void end(std::string_view name, SpanClock::time_point began) noexcept override;

  size_t num_events() const;
  size_t num_dropped() const;

  // Spans that ended so far, with the names of their threads.
  TimelineSpans spans() const;

  // The same as a Chrome trace, atomically written. Throws DataError.
  void write(const std::filesystem::path& path) const;

 private:
  struct Event {
    std::string name;
    int thread;  // in the order in which threads first ended a span
    double begin_us;
    double length_us;
  };
  int thread_number();  // needs the mutex

  TimelineOptions options_;
  SpanClock::time_point start_;
  mutable std::mutex mutex_;
  std::vector<Event> events_;
  std::map<std::thread::id, int> threads_;
  std::vector<std::string> thread_names_;  // by number
  size_t dropped_ = 0;
};

}  // namespace welkin::observe
