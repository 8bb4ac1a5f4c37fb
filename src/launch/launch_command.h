// SPDX-License-Identifier: Apache-2.0
// `welkin launch -n N -- VERB ...`: the command line, and the start of processes, which load torch themselves.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launch/elastic/job_board.h"
#include "launch/elastic/round.h"
#include "launch/workers.h"

namespace welkin::launch {

struct LaunchArguments {
  int64_t num_local = 0;  // -n
  int64_t num_nodes = 1;
  int64_t node_rank = 0;
  std::string rendezvous;  // HOST:PORT; empty on one node: loopback and a port of the system's choice
  std::string bind = "auto";
  bool prefix = true;
  double grace_s = 5;
  std::optional<ElasticLimits> elastic;
  std::optional<int64_t> max_restarts;  // alone: an elastic job that needs all ranks
  bool restarts_alone = false;          // --elastic is not given: `elastic` comes from max_restarts
  bool help = false;
  bool sbatch = false;             // print a job script instead of starting anything
  std::string script = "slurm";    // of this batch system
  std::vector<std::string> batch;  // KEY=VALUE: lines of the job script
  std::vector<std::string> own;    // the words before the verb, -- included
  std::vector<std::string> verb;   // the words after --
};

// `words` are the arguments after `launch`. ConfigError naming the option. -h alone needs no verb.
LaunchArguments parse_launch(const std::vector<std::string>& words);

std::string launch_help();

struct LaunchOption {
  std::string_view name;  // "--nproc"
  std::string_view short_name;
  std::string_view metavar;  // empty: it takes no value
  std::string_view help;
};
// The options that launch_help() lists.
std::span<const LaunchOption> launch_options();

// The command that the user typed, quoted for a shell, to start the same run again. Empty where it takes more than one command:
// several nodes. The processes find it in WELKIN_COMMAND.
std::string typed_command(const LaunchArguments& arguments, const std::vector<std::string>& options);

// Starts the processes and waits for them, or prints the job script. `program` is the absolute path of `welkin`, `options`
// those before the verb `launch`, which are handed on; `make_board` serves or finds the board of an elastic job. Returns the
// exit code of the run.
int run_launch(const LaunchArguments& arguments, const std::string& program, const std::vector<std::string>& options,
               const MakeBoard& make_board);

}  // namespace welkin::launch
