// SPDX-License-Identifier: Apache-2.0
// events.jsonl: events of a run besides steps, one JSON object per line, for programs. Ranks of all hosts share the file: most
// lines are the first rank's, but only the rank itself can tell of its fault or its failure. Each appends under a lock of the
// file, since network file systems append two hosts' lines to one place. Lines are whole or not there, and what a killed
// process has left of one stands on a line of its own. Thread-safe.
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

// Formats `milliseconds` since 1970 as "2026-01-31T12:00:00.250Z".
std::string utc_text(int64_t milliseconds);

// {"time":"2026-01-31T12:00:00.250Z","event":"spike","step":12,"rank":0,...} and a line end. Numbers that are not finite
// are texts: "nan", "inf", "-inf". `milliseconds` since 1970.
std::string event_line(int64_t milliseconds, std::string_view event, int64_t step, int64_t rank, const EventFields& fields);

class EventLog {
 public:
  // The first event creates the file.
  EventLog(std::filesystem::path path, int64_t rank) : path_(std::move(path)), rank_(rank) {}

  // Returns false if the line cannot be written; it is lost then, but the run goes on.
  bool add(std::string_view event, int64_t step, const EventFields& fields = {});
  // Number of events of this process so far, by name.
  std::map<std::string, int64_t> counts() const;

 private:
  std::filesystem::path path_;
  int64_t rank_;
  mutable std::mutex mutex_;
  FileDescriptor file_;
  std::map<std::string, int64_t> counts_;
};

}  // namespace welkin::observe
