// SPDX-License-Identifier: Apache-2.0
// Facts of a run folder besides scalars: configuration, surroundings, events, status. Read from config.yaml,
// out.log, events.jsonl and status.json. Absent or unreadable parts are left out, and every byte counts as hostile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace welkin::observe {

// A line of events.jsonl.
struct RunEvent {
  double wall_time = 0;  // seconds since 1970; 0: not known
  std::string name{};
  int64_t step = 0, rank = 0;
  std::string text{};  // its other fields, "name=value, name=value"
};

struct RunFacts {
  std::map<std::string, std::string> configuration{};            // key to value, as printed by the run
  std::vector<std::pair<std::string, std::string>> environment;  // name to value
  std::vector<RunEvent> events{};                                // of many, the first and the last ones
  int64_t num_events = 0;                                        // number of all events
  std::string state{};                                           // from status.json; empty: not known
  std::string host{};                                            // of the first rank
  int64_t process = 0;                                           // of the first rank; 0: not known
};

RunFacts read_run_facts(const std::filesystem::path& run_folder);

// The texts of these files; empty if absent.
struct RunTexts {
  std::string_view log{}, configuration{}, status{}, events{};
};
RunFacts run_facts_of(const RunTexts& texts);

// Parses "2026-01-31T12:00:00.250Z" to seconds since 1970; 0 for other texts.
double seconds_of_utc(const std::string& text);

}  // namespace welkin::observe
