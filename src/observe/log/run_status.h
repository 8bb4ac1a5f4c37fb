// SPDX-License-Identifier: Apache-2.0
// Status of a run, for a site's monitoring: status.json, and metrics.prom in Prometheus' text format (which node_exporter's
// textfile collector reads). Both files are replaced as a whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace welkin::observe {

struct RunStatus {
  std::string state = "running";  // starting, running, finished, interrupted or failed
  std::string run;                // the folder
  std::string host;
  int64_t process = 0;
  int64_t ranks = 1;
  int64_t step = 0, total_steps = 0;
  int64_t epoch = 0;                       // from 1
  std::optional<double> loss;              // of the latest step whose loss was read
  std::optional<double> learning_rate;     // of the same step
  double samples_per_s = 0;                // since the last status
  std::optional<double> seconds_left;      // at the pace of this process
  std::string last_checkpoint;             // its folder; empty: none
  int64_t checkpoint_interval = 0;         // steps; 0: none on the way
  std::optional<double> expected_goodput;  // expected fraction of time, if the run chooses that interval
  std::map<std::string, int64_t> events;
  std::string error;         // why the run has failed
  int64_t milliseconds = 0;  // since 1970, of this status
};

std::string status_json(const RunStatus& status);
std::string status_prometheus(const RunStatus& status);

// status.json and metrics.prom in `folder`. DataError when the file system refuses.
void write_status(const std::filesystem::path& folder, const RunStatus& status);

}  // namespace welkin::observe
