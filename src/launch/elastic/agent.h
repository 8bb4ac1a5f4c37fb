// SPDX-License-Identifier: Apache-2.0
// The launcher of a node in an elastic job. It starts the node's processes, and restarts those that are lost. The first node's
// launcher also decides, over the board, which processes are the ranks of a round.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "launch/elastic/job_board.h"
#include "launch/elastic/next_round.h"

namespace welkin::launch {

struct ElasticPlan {
  std::vector<std::string> command;
  int64_t num_local = 1, num_nodes = 1, node = 0;
  ElasticLimits limits;
  int64_t max_restarts = 3;  // of this node's processes, together
  std::chrono::milliseconds grace{5000};
  double join_s = 60;
  bool prefix = true;
  // Environment for the process of a slot, besides its name in the job.
  std::function<std::vector<std::pair<std::string, std::string>>(int64_t local)> environment;
};

// Variables of a process: its ProcessId, and the limits.
inline constexpr const char* kElasticId = "WELKIN_ELASTIC_ID";
inline constexpr const char* kElasticLimits = "WELKIN_ELASTIC";
// Seconds since 1970 at which the launcher began: a process that comes later has the job's time limit, not one of its own.
inline constexpr const char* kJobStarted = "WELKIN_JOB_STARTED";

// Starts the node's processes, and returns the exit code of the run. Reports on stderr each lost and restarted process, and why
// a run cannot go on. `make_board` is called when signals are blocked, so that threads of the board's do not take them. Signals
// as in run_workers(). ConfigError when the program cannot be started, CommError when the first node's launcher is gone.
int run_elastic(const ElasticPlan& plan, const std::function<std::unique_ptr<JobBoard>()>& make_board);

}  // namespace welkin::launch
