// SPDX-License-Identifier: Apache-2.0
#include "launch/batch/batch_script.h"

#include <algorithm>
#include <cctype>

#include "core/error.h"
#include "core/text.h"
#include "launch/batch/shell_word.h"

namespace welkin::launch {
namespace {

bool is_given(const BatchJob& job, const std::string& key) {
  return std::any_of(job.directives.begin(), job.directives.end(), [&](const auto& directive) { return directive.first == key; });
}

}  // namespace

std::pair<std::string, std::string> parse_directive(const std::string& text) {
  const size_t equals = text.find('=');
  std::string key = text.substr(0, equals);
  std::string value = equals == std::string::npos ? std::string() : text.substr(equals + 1);
  const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
  const bool is_key = !key.empty() && key.front() != '-' && std::all_of(key.begin(), key.end(), is_word);
  if (!is_key || value.find('\n') != std::string::npos) {
    throw ConfigError("launch", cat("not a directive of sbatch: batch=", text),
                      "For instance --batch account=m1234 --batch time=01:00:00");
  }
  return {std::move(key), std::move(value)};
}

void check_sizes(const BatchJob& job, bool has_short) {
  for (const auto& [key, value] : job.directives) {
    const bool is_nodes = key == "nodes" || (has_short && key == "N");
    const bool is_tasks = key == "ntasks" || key == "ntasks-per-node" || (has_short && key == "n");
    if (!is_nodes && !is_tasks) continue;
    throw ConfigError("launch", cat("the script sets this from what it starts: batch=", key, "=", value),
                      is_nodes ? "Give --nnodes" : "Give the processes of a node as -n");
  }
}

std::string batch_script(const BatchJob& job) {
  check_sizes(job);
  std::string text = "#!/bin/bash\n";
  const auto directive = [&](const std::string& key, const std::string& value) {
    text += cat("#SBATCH --", key, value.empty() ? "" : "=", directive_value(value), "\n");
  };
  directive("nodes", cat(job.nodes));
  directive("ntasks-per-node", cat(job.tasks_per_node));
  if (!is_given(job, "job-name")) directive("job-name", "welkin");
  if (!is_given(job, "output")) directive("output", "%x-%j.out");
  if (!is_given(job, "signal")) directive("signal", "USR1@120");  // time to save, and with --requeue a next job
  for (const auto& [key, value] : job.directives) directive(key, value);
  text +=
      "set -euo pipefail\n"
      "export MASTER_ADDR=${MASTER_ADDR:-$(hostname)}\n"
      "export MASTER_PORT=${MASTER_PORT:-$((29500 + SLURM_JOB_ID % 8000))}\n"
      "export WELKIN_JOB_SECRET=${WELKIN_JOB_SECRET:-$(od -An -N32 -tx1 /dev/urandom | tr -d ' \\n')}\n"
      "export HDF5_USE_FILE_LOCKING=${HDF5_USE_FILE_LOCKING:-FALSE}\n";
  text += cat("export WELKIN_BIND=", shell_word(job.bind), "\n");
  text += cat("exec srun --kill-on-bad-exit=1 --cpu-bind=none ", is_given(job, "image") ? "shifter " : "",
              shell_line(job.command), " \"$@\"\n");
  return text;
}

}  // namespace welkin::launch
