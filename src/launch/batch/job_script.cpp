// SPDX-License-Identifier: Apache-2.0
#include "launch/batch/job_script.h"

#include <algorithm>
#include <array>
#include <optional>

#include "core/duration.h"
#include "core/error.h"
#include "core/text.h"
#include "launch/batch/shell_word.h"

namespace welkin::launch {
namespace {

constexpr const char* kNewSecret = "$(od -An -N32 -tx1 /dev/urandom | tr -d ' \\n')";

bool has_directive(const BatchJob& job, std::string_view key, std::string_view begin = "") {
  return std::ranges::any_of(job.directives, [&](const auto& one) { return one.first == key && one.second.starts_with(begin); });
}

// The port follows from the script's process: numbers of jobs are not numeric everywhere.
std::string meeting() {
  return "set -euo pipefail\n"
         "export MASTER_ADDR=${MASTER_ADDR:-$(hostname)}\n"
         "export MASTER_PORT=${MASTER_PORT:-$((29500 + $$ % 8000))}\n"
         "export HDF5_USE_FILE_LOCKING=${HDF5_USE_FILE_LOCKING:-FALSE}\n";
}

// Words of Slurm that mean the same elsewhere: the key and, where it needs one, the value in Flux, LSF and PBS. No key: the
// system has no such directive.
struct Translation {
  std::string_view slurm, flux, lsf, pbs;
  std::string_view pbs_value = "";
};
constexpr std::array<Translation, 8> kTranslations{{{"account", "bank", "P", "A"},
                                                    {"job-name", "job-name", "J", "N"},
                                                    {"output", "output", "o", "o"},
                                                    {"error", "error", "e", "e"},
                                                    {"partition", "queue", "q", "q"},
                                                    {"requeue", "", "r", "r", "y"},
                                                    {"no-requeue", "", "rn", "r", "n"},
                                                    {"time", "time-limit", "W", "l"}}};

int64_t time_limit_s(const std::string& value) {
  const std::optional<int64_t> seconds = parse_duration_s(value);
  if (seconds && *seconds > 0) return *seconds;
  throw ConfigError("launch", cat("not a time limit: batch=time=", value), "Give it as Slurm does: time=02:00:00, or minutes");
}

std::string time_limit(const std::string& system, const std::string& value) {
  const int64_t seconds = time_limit_s(value), minutes = (seconds + 59) / 60;
  const auto two_digits = [](int64_t number) { return cat(number < 10 ? "0" : "", number); };
  if (system == "flux") return cat(seconds, "s");
  if (system == "lsf") return cat(minutes / 60, ":", two_digits(minutes % 60));
  return cat("walltime=", two_digits(seconds / 3600), ":", two_digits(seconds / 60 % 60), ":", two_digits(seconds % 60));
}

[[noreturn]] void refuse_directive(const std::string& system, const std::string& key) {
  throw ConfigError("launch", cat("no directive of this batch system: script=", system, ", batch=", key),
                    cat("Give it by the system's own name; translated are time, account, job-name, output, error, partition",
                        system == "flux" ? "" : ", requeue"));
}

// LSF and PBS would read a key that is no option of theirs as another one: -requeue as -r.
void check_own_key(const std::string& system, const std::string& key) {
  const bool is_letter = key.size() == 1;
  const bool is_word_of_lsf = std::ranges::none_of(key, [](char c) { return c == '-' || c == '_'; });
  if ((system == "pbs" && !is_letter) || (system == "lsf" && !is_word_of_lsf)) refuse_directive(system, key);
}

BatchJob translated(const std::string& system, BatchJob job) {
  for (auto& [key, value] : job.directives) {
    const auto found = std::ranges::find(kTranslations, key, &Translation::slurm);
    if (found == kTranslations.end()) {
      check_own_key(system, key);
      continue;
    }
    const std::string_view own = system == "flux" ? found->flux : system == "lsf" ? found->lsf : found->pbs;
    if (own.empty()) refuse_directive(system, key);
    if (key == "time") value = time_limit(system, value);
    if (system == "pbs" && !found->pbs_value.empty()) value = found->pbs_value;
    key = own;
  }
  return job;
}

std::string flux_script(const BatchJob& job) {
  std::string text = "#!/bin/bash\n";
  const auto directive = [&](const std::string& key, const std::string& value) {
    text += cat("#flux: --", key, value.empty() ? "" : "=", directive_value(value), "\n");
  };
  directive("nodes", cat(job.nodes));
  if (!has_directive(job, "exclusive")) directive("exclusive", "");
  if (!has_directive(job, "job-name")) directive("job-name", "welkin");
  if (!has_directive(job, "output")) directive("output", "welkin-{{id}}.out");
  for (const auto& [key, value] : job.directives) directive(key, value);
  text += cat(meeting(), "export WELKIN_JOB_SECRET=${WELKIN_JOB_SECRET:-", kNewSecret, "}\n");
  return cat(text, "export WELKIN_BIND=", shell_word(job.bind), "\n", "exec flux run --nodes=", job.nodes,
             " --ntasks=", job.nodes * job.tasks_per_node, " --exclusive -o cpu-affinity=off ", shell_line(job.command),
             " \"$@\"\n");
}

// Not every mpirun hands variables on to other nodes, so they stand in front of the program. The secret goes into a file
// that only its owner may read, since all users of a node may read command lines. TERM is for the ranks; the shell waits for
// them.
std::string start_by_mpirun(const BatchJob& job) {
  return cat("export WELKIN_JOB_SECRET_FILE=${WELKIN_JOB_SECRET_FILE:-$PWD/.welkin-secret-$MASTER_PORT-$$}\n",
             "trap 'rm -f \"$PWD/.welkin-secret-$MASTER_PORT-$$\"' EXIT\n", "trap : TERM\n",
             "[ -e \"$WELKIN_JOB_SECRET_FILE\" ] || (umask 077 && echo ", kNewSecret, " >\"$WELKIN_JOB_SECRET_FILE\")\n",
             "unset WELKIN_JOB_SECRET\n", "mpirun -n ", job.nodes * job.tasks_per_node,
             " env MASTER_ADDR=\"$MASTER_ADDR\" MASTER_PORT=\"$MASTER_PORT\" WELKIN_JOB_SECRET_FILE=\"$WELKIN_JOB_SECRET_FILE\""
             " HDF5_USE_FILE_LOCKING=\"$HDF5_USE_FILE_LOCKING\" WELKIN_BIND=",
             shell_word(job.bind), " ", shell_line(job.command), " \"$@\"\n");
}

std::string lsf_script(const BatchJob& job) {
  std::string text = "#!/bin/bash\n";
  const auto directive = [&](const std::string& key, const std::string& value) {
    text += cat("#BSUB -", key, value.empty() ? "" : " ", directive_value(value), "\n");
  };
  directive("n", cat(job.nodes * job.tasks_per_node));
  if (!has_directive(job, "R")) directive("R", cat("\"span[ptile=", job.tasks_per_node, "]\""));
  if (!has_directive(job, "J")) directive("J", "welkin");
  if (!has_directive(job, "o")) directive("o", "welkin-%J.out");
  for (const auto& [key, value] : job.directives) directive(key, value);
  return text + meeting() + start_by_mpirun(job);
}

std::string pbs_script(const BatchJob& job) {
  std::string text = "#!/bin/bash\n";
  const auto directive = [&](const std::string& key, const std::string& value) {
    text += cat("#PBS -", key, value.empty() ? "" : " ", directive_value(value), "\n");
  };
  if (!has_directive(job, "l", "select=")) directive("l", cat("select=", job.nodes, ":mpiprocs=", job.tasks_per_node));
  if (!has_directive(job, "l", "place=")) directive("l", "place=scatter:excl");
  if (!has_directive(job, "N")) directive("N", "welkin");
  if (!has_directive(job, "j")) directive("j", "oe");
  for (const auto& [key, value] : job.directives) directive(key, value);
  return cat(text, meeting(), "cd \"${PBS_O_WORKDIR:-.}\"\n", start_by_mpirun(job));
}

}  // namespace

const std::vector<std::string>& batch_systems() {
  static const std::vector<std::string> systems{"slurm", "flux", "lsf", "pbs"};
  return systems;
}

std::string job_script(const std::string& system, const BatchJob& job) {
  if (system == "slurm") return batch_script(job);
  if (has_directive(job, "image")) {
    throw ConfigError("launch", cat("only Slurm's shifter takes an image: script=", system),
                      "Put the container in front of the program by hand");
  }
  check_sizes(job, /*has_short=*/system != "pbs");  // -N of PBS is a name
  if (system == "flux") return flux_script(translated(system, job));
  if (system == "lsf") return lsf_script(translated(system, job));
  if (system == "pbs") return pbs_script(translated(system, job));
  throw ConfigError("launch", cat("unknown batch system: script=", system), cat("Choose one of: ", join(batch_systems(), ", ")));
}

}  // namespace welkin::launch
