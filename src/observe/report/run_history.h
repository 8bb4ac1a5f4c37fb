// SPDX-License-Identifier: Apache-2.0
// The files of a run of Welkin or the tutorials: the scalars of its event files, and numbers of devices and samples per
// step, if its folder tells them.
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
  std::optional<int64_t> devices{};       // from a parent folder <W>GPU
  std::optional<int64_t> global_batch{};  // from out.log in this folder or a parent
  std::filesystem::path folder{};         // of the run
  RunFacts facts{};
  std::filesystem::file_time_type last_write{};  // time of the last change of its event files and status.json
  std::string damage{};                          // error in an event file, whose values before it are kept; empty: none
};

// `argument` is PATH or LABEL=PATH: an event file, or a folder that is searched for folders with event files, each a run.
// Without a LABEL the path gives one; if several runs share LABEL, the rest of the path is added.
// DataError if there is no event file, or if the only run's files are damaged from the beginning.
std::vector<RunHistory> read_runs(const std::string& argument);

// Runs with equal labels get the parent folders in front by which they differ.
void tell_apart(std::vector<RunHistory>& runs);

// Figures of one run.
struct RunFigures {
  std::string label;
  std::optional<int64_t> devices{}, global_batch{};
  int64_t steps = 0;
  double seconds = 0;  // from the first event to the last
  std::optional<double> samples_per_second{};
  std::optional<ScalarPoint> best{};                          // the smallest finite score
  std::optional<ScalarPoint> reached{};                       // the first score that is at or below the target
  std::optional<double> seconds_to_target{}, device_hours{};  // until the target was reached, from the first event
};

// `score` is a tag for which lower is better.
RunFigures run_figures(const RunHistory& run, const std::string& score, std::optional<double> target);

// The worst of the runs' best scores, which all runs reach. Runs that never improved after their first value are left out.
// Nothing if there is no other run.
std::optional<double> common_target(const std::vector<RunHistory>& runs, const std::string& score);

}  // namespace welkin::observe
