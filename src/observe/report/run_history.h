// SPDX-License-Identifier: Apache-2.0
// What a run has left behind, of ours or of the tutorials: the scalars of its event files, and how many devices and samples a
// step had, as far as its folder says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "observe/events/event_reader.h"
#include "observe/report/run_facts.h"

namespace welkin::observe {

struct RunHistory {
  std::string label;
  EventScalars scalars{};
  std::optional<int64_t> devices{};       // from a folder <W>GPU above
  std::optional<int64_t> global_batch{};  // from the out.log beside or above
  std::filesystem::path folder{};         // of the run
  RunFacts facts{};
  std::filesystem::file_time_type last_write{};  // into its event files and status.json
  std::string damage{};                          // of an event file, of which what came before it is here; empty: none
};

// `argument` is PATH or LABEL=PATH: an event file, or a folder in which all folders with event files are looked up, each a run. A
// label is taken from the path where none is given; with several runs below one label, the rest of the path is added to it.
// Throws DataError where there is no event file, or the only run's are damaged from the beginning.
std::vector<RunHistory> read_runs(const std::string& argument);

// Runs of one label get the folders above in front of it by which they differ.
void tell_apart(std::vector<RunHistory>& runs);

// What one run comes to.
struct RunFigures {
  std::string label;
  std::optional<int64_t> devices{}, global_batch{};
  int64_t steps = 0;
  double seconds = 0;  // from the first event to the last
  std::optional<double> samples_per_second{};
  std::optional<ScalarPoint> best{};                          // the smallest finite score
  std::optional<ScalarPoint> reached{};                       // the first score at the target or below
  std::optional<double> seconds_to_target{}, device_hours{};  // to it, from the first event
};

// `score` is a tag of which less is better.
RunFigures run_figures(const RunHistory& run, const std::string& score, std::optional<double> target);

// The best score of the run that comes least far: all runs reach it, but for those that never got better than they began. Nothing
// where there is no other.
std::optional<double> common_target(const std::vector<RunHistory>& runs, const std::string& score);

}  // namespace welkin::observe
