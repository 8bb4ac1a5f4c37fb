// SPDX-License-Identifier: Apache-2.0
// events.jsonl: what happened to a run besides steps, one JSON object a line, for programs. Lines are appended whole, so ranks on
// one host may share the file, and a run that is killed leaves whole lines. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/file_descriptor.h"

namespace welkin::observe {

using EventValue = std::variant<int64_t, double, std::string, std::vector<int64_t>>;
using EventFields = std::vector<std::pair<std::string, EventValue>>;

// "2026-01-31T12:00:00.250Z"; `milliseconds` since 1970.
std::string utc_text(int64_t milliseconds);

// {"time":"2026-01-31T12:00:00.250Z","event":"spike","step":12,"rank":0,...} and the end of the line. Numbers that are not finite
// are texts: "nan", "inf", "-inf". `milliseconds` since 1970.
std::string event_line(int64_t milliseconds, std::string_view event, int64_t step, int64_t rank, const EventFields& fields);

class EventLog {
 public:
  // The file is made with the first event.
  EventLog(std::filesystem::path path, int64_t rank) : path_(std::move(path)), rank_(rank) {}

  // A line that cannot be written ends no run: false, and it is lost.
  bool add(std::string_view event, int64_t step, const EventFields& fields = {});
  // Events of this process so far, by name.
  std::map<std::string, int64_t> counts() const;

 private:
  std::filesystem::path path_;
  int64_t rank_;
  mutable std::mutex mutex_;
  FileDescriptor file_;
  std::map<std::string, int64_t> counts_;
};

}  // namespace welkin::observe
