// SPDX-License-Identifier: Apache-2.0
#include "observe/timeline/timeline.h"

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

// Span names may hold anything, even invalid UTF-8.
std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// Name of the calling thread, as a debugger shows it.
std::string thread_name() {
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return name.data();
}

}  // namespace

int Timeline::thread_number() {
  const auto [row, is_new] = threads_.try_emplace(std::this_thread::get_id(), static_cast<int>(lanes_.size()));
  if (is_new) lanes_.push_back({thread_name(), true});
  return row->second;
}

int Timeline::lane_number(std::string_view name) {
  const auto [row, is_new] = others_.try_emplace(std::string(name), static_cast<int>(lanes_.size()));
  if (is_new) lanes_.push_back({std::string(name), false});
  return row->second;
}

TimelineSpans Timeline::spans() const {
  const std::lock_guard lock(mutex_);
  TimelineSpans all;
  for (const Lane& lane : lanes_) all.lanes.push_back(lane.name);
  for (const Event& event : events_) all.spans.push_back({event.name, event.lane, event.begin_us, event.length_us});
  return all;
}

void Timeline::add(std::string_view name, int lane, SpanClock::time_point began, SpanClock::time_point ended) {
  events_.push_back({std::string(name), lane, microseconds(began - start_), microseconds(ended - began)});
}

void Timeline::end(std::string_view name, SpanClock::time_point began) noexcept {
  const auto ended = SpanClock::now();
  const std::lock_guard lock(mutex_);
  if (events_.size() >= options_.max_events) {
    ++dropped_;
    return;
  }
  add(name, thread_number(), began, ended);
}

void Timeline::record(std::string_view lane, std::string_view name, SpanClock::time_point began,
                      SpanClock::time_point ended) noexcept {
  const std::lock_guard lock(mutex_);
  if (events_.size() >= options_.max_events) {
    ++dropped_;
    return;
  }
  add(name, lane.empty() ? thread_number() : lane_number(lane), began, ended);
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
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (!lanes_[i].is_thread) continue;
    json += cat(",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":", options_.rank, ",\"tid\":", i,
                ",\"args\":{\"name\":", json_text(lanes_[i].name), "}}");
  }
  for (size_t i = 0; i < events_.size(); ++i) {
    const Event& event = events_[i];
    const Lane& lane = lanes_[static_cast<size_t>(event.lane)];
    const std::string name = cat(",\n{\"name\":", json_text(event.name), ",\"pid\":", options_.rank, ",\"tid\":", event.lane);
    if (lane.is_thread) {
      json += cat(name, ",\"ph\":\"X\",\"ts\":", fixed(event.begin_us), ",\"dur\":", fixed(event.length_us), "}");
      continue;
    }
    // Complete events of one thread must nest. Asynchronous events, each with its own id, may overlap.
    const std::string async = cat(name, ",\"cat\":", json_text(lane.name), ",\"id\":", i);
    json += cat(async, ",\"ph\":\"b\",\"ts\":", fixed(event.begin_us), "}");
    json += cat(async, ",\"ph\":\"e\",\"ts\":", fixed(event.begin_us + event.length_us), "}");
  }
  json += "\n]}\n";
  write_file_atomically(path, json);
}

}  // namespace welkin::observe
