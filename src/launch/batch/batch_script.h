// SPDX-License-Identifier: Apache-2.0
// A Slurm job script for a run. Pure text.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace welkin::launch {

struct BatchJob {
  int64_t nodes = 1;
  int64_t tasks_per_node = 1;
  std::vector<std::pair<std::string, std::string>> directives;  // of sbatch: {"account", "m1234"}; they win over our defaults
  std::string bind = "auto";
  std::vector<std::string> command;  // program, its options, verb and arguments
};

// "KEY=VALUE" or "KEY". ConfigError when the key is no word, or a line break would add lines to the script.
std::pair<std::string, std::string> parse_directive(const std::string& text);

// ConfigError for directives that contradict the nodes or tasks of `job`. `has_short`: the system's -N and -n are these.
void check_sizes(const BatchJob& job, bool has_short = true);

// The script as `sbatch` takes it; more arguments of sbatch's command line after the script go to the verb. A directive `image`
// runs the program inside it through shifter.
std::string batch_script(const BatchJob& job);

}  // namespace welkin::launch
