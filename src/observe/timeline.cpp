// SPDX-License-Identifier: Apache-2.0
#include "observe/timeline.h"

#include <fcntl.h>
#include <pthread.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/text.h"

namespace welkin::observe {
namespace {

double microseconds(SpanClock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

std::string fixed(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.3f", value);
  return text.data();
}

// Span names may hold anything, also what is not UTF-8.
std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// Of the calling thread, as a debugger shows it.
std::string thread_name() {
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return name.data();
}

}  // namespace

int Timeline::thread_number() {
  const auto [row, is_new] = threads_.try_emplace(std::this_thread::get_id(), static_cast<int>(threads_.size()));
  if (is_new) thread_names_.push_back(thread_name());
  return row->second;
}

TimelineSpans Timeline::spans() const {
  const std::lock_guard lock(mutex_);
  TimelineSpans all{.lanes = thread_names_, .spans = {}};
  for (const Event& event : events_) all.spans.push_back({event.name, event.thread, event.begin_us, event.length_us});
  return all;
}

void Timeline::end(std::string_view name, SpanClock::time_point began) noexcept {
  const auto ended = SpanClock::now();
  const std::lock_guard lock(mutex_);
  if (events_.size() >= options_.max_events) {
    ++dropped_;
    return;
  }
  events_.push_back({std::string(name), thread_number(), microseconds(began - start_), microseconds(ended - began)});
}

size_t Timeline::num_events() const {
  const std::lock_guard lock(mutex_);
  return events_.size();
}

size_t Timeline::num_dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void Timeline::write(const std::filesystem::path& path) const {
  const std::lock_guard lock(mutex_);
  std::string json = cat("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"dropped_spans\":", dropped_, "},\"traceEvents\":[\n");
  json += cat("{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":", options_.rank, ",\"args\":{\"name\":\"rank ", options_.rank,
              "\"}}");
  for (size_t i = 0; i < thread_names_.size(); ++i) {
    json += cat(",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":", options_.rank, ",\"tid\":", i,
                ",\"args\":{\"name\":", json_text(thread_names_[i]), "}}");
  }
  for (const Event& event : events_) {
    json += cat(",\n{\"name\":", json_text(event.name), ",\"ph\":\"X\",\"pid\":", options_.rank, ",\"tid\":", event.thread,
                ",\"ts\":", fixed(event.begin_us), ",\"dur\":", fixed(event.length_us), "}");
  }
  json += "\n]}\n";
  write_file_atomically(path, json);
}

}  // namespace welkin::observe
