// SPDX-License-Identifier: Apache-2.0
// The processes of a run on this node, started by ourselves: exec, never fork alone, since nothing survives a fork once torch is
// loaded. Their output is read line by line and marked with the rank; signals are passed on; when one fails, all end.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace welkin::launch {

struct WorkerPlan {
  std::vector<std::string> command;  // program and arguments
  int64_t num_local = 1;             // processes to start here
  int64_t num_nodes = 1;
  int64_t node = 0;
  std::string master_address = "127.0.0.1";
  int64_t master_port = 0;
  int listener = -1;                                             // handed to rank 0 where it is this node's; -1: none
  std::vector<std::pair<std::string, std::string>> environment;  // besides the ranks' numbers; replaces what is inherited
  bool prefix = true;                                            // mark lines with the rank
  std::chrono::milliseconds grace{5000};  // for the others to report and end by themselves after one has failed
};

// The variables that tell a worker its place (read again by launch/ranks.h).
std::vector<std::pair<std::string, std::string>> worker_environment(const WorkerPlan& plan, int64_t local_rank);

// Starts all, waits for all. They share a new job secret (launch/job_secret.h) where there is one node and none is set. Returns
// the exit code of the run: 0, or that of the rank that failed first (128 + number for a signal), with its rank and reason on
// stderr. Blocks SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 for the calling thread and passes them on. In a process with other
// threads that do not block them, they end the process and its workers. ConfigError when the program cannot be started.
int run_workers(WorkerPlan plan);

}  // namespace welkin::launch
