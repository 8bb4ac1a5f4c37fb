// SPDX-License-Identifier: Apache-2.0
#include "launch/batch/scheduler.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "core/duration.h"
#include "core/error.h"
#include "core/text.h"
#include "launch/batch/shell_word.h"

namespace welkin::launch {
namespace {

std::string variable(const ReadVariable& read, const char* name) {
  const char* value = read(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string first_word(const std::string& text) {
  std::istringstream words(text);
  std::string word;
  words >> word;
  return word;
}

// The value of a line "    name = value".
std::string field_of(const std::string& text, std::string_view name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t equals = line.find('=');
    if (equals != std::string::npos && first_word(line.substr(0, equals)) == name) return first_word(line.substr(equals + 1));
  }
  return {};
}

std::optional<double> slurm_seconds(const ReadVariable& read, const RunCommand& run, int64_t unix_now) {
  const std::string end = variable(read, "SLURM_JOB_END_TIME");
  char* rest = nullptr;
  const int64_t end_time = std::strtoll(end.c_str(), &rest, 10);
  constexpr int64_t kFarthest = int64_t{1} << 40;  // a time of a clock
  const bool is_time = !end.empty() && *rest == '\0' && end_time > 0 && end_time < kFarthest;
  if (is_time) return static_cast<double>(end_time - unix_now);
  const auto text = run(cat("squeue --noheader --format=%L --job=", shell_word(variable(read, "SLURM_JOB_ID"))));
  const auto seconds = text ? parse_duration_s(first_word(*text)) : std::nullopt;  // else it is UNLIMITED, NOT_SET or INVALID
  return seconds ? std::optional<double>(static_cast<double>(*seconds)) : std::nullopt;
}

std::optional<double> flux_seconds(const ReadVariable& read, const RunCommand& run) {
  const auto text = run(cat("flux job timeleft ", shell_word(variable(read, "FLUX_JOB_ID"))));
  if (!text) return {};
  const auto seconds = parse_count(first_word(*text));  // else it is infinity
  return seconds ? std::optional<double>(static_cast<double>(*seconds)) : std::nullopt;
}

// "1:30 L": hours and minutes, and which limit it is.
// An element of an array by its own name: the number alone means all elements. A job outside of arrays has the index 0.
std::string lsf_job(const ReadVariable& read) {
  const std::string job = variable(read, "LSB_JOBID"), index = variable(read, "LSB_JOBINDEX");
  return index.empty() || index == "0" ? job : cat(job, "[", index, "]");
}

std::optional<double> lsf_seconds(const ReadVariable& read, const RunCommand& run) {
  const auto text = run(cat("bjobs -noheader -o time_left ", shell_word(lsf_job(read))));
  if (!text) return {};
  const std::string word = first_word(*text);
  if (word.find(':') == std::string::npos) return {};  // "-": no limit
  const auto seconds = parse_duration_s(word + ":0");
  return seconds ? std::optional<double>(static_cast<double>(*seconds)) : std::nullopt;
}

std::optional<double> pbs_seconds(const ReadVariable& read, const RunCommand& run) {
  const auto text = run(cat("qstat -f ", shell_word(variable(read, "PBS_JOBID"))));
  if (!text) return {};
  const auto limit = parse_duration_s(field_of(*text, "Resource_List.walltime"));
  const auto used = parse_duration_s(field_of(*text, "resources_used.walltime"));  // absent in a job's first seconds
  if (!limit) return {};
  return static_cast<double>(*limit - used.value_or(0));
}

// A job of another system may run inside a Slurm job: the inner one ends first.
struct System {
  const char* name;
  const char* job;      // the variable with its number
  const char* requeue;  // before that number; null: there is none
};
constexpr std::array<System, 4> kSystems{{{"Flux", "FLUX_JOB_ID", nullptr},
                                          {"Slurm", "SLURM_JOB_ID", "scontrol requeue "},
                                          {"LSF", "LSB_JOBID", "brequeue "},
                                          {"PBS", "PBS_JOBID", "qrerun "}}};

const System* system_of(const ReadVariable& read) {
  for (const System& system : kSystems) {
    if (!variable(read, system.job).empty()) return &system;
  }
  return nullptr;
}

}  // namespace

constexpr size_t kMostOutput = size_t{1} << 20;  // answers have a few lines

std::optional<std::string> output_of(const std::string& command) {
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(cat("timeout 30 ", command).c_str(), "re"), pclose);
  if (!pipe) return {};
  std::string text;
  std::array<char, 4096> piece{};
  while (const size_t count = std::fread(piece.data(), 1, piece.size(), pipe.get())) {
    if (text.size() + count > kMostOutput) return {};  // ends the command, which finds the pipe closed
    text.append(piece.data(), count);
  }
  if (pclose(pipe.release()) != 0) return {};
  return text;
}

std::optional<TimeLeft> time_left(const ReadVariable& read, const RunCommand& run, int64_t unix_now) {
  const System* system = system_of(read);
  if (system == nullptr) return {};
  const std::string name = system->name;
  const std::optional<double> seconds = name == "Flux"    ? flux_seconds(read, run)
                                        : name == "Slurm" ? slurm_seconds(read, run, unix_now)
                                        : name == "LSF"   ? lsf_seconds(read, run)
                                                          : pbs_seconds(read, run);
  if (!seconds) return {};
  return TimeLeft{.seconds = *seconds, .source = name};
}

std::string requeue_command(const ReadVariable& read) {
  const System* system = system_of(read);
  if (system == nullptr) {
    throw ConfigError("requeue", "this is no job of a batch system: requeue=true",
                      "Leave --requeue out, or submit the run with sbatch, bsub or qsub");
  }
  if (system->requeue == nullptr) {
    throw ConfigError("requeue", cat("this batch system has no command that queues a job again: system=", system->name),
                      "Leave --requeue out, and submit the next job with a dependency on this one");
  }
  const std::string job = variable(read, system->job);
  return cat(system->requeue, shell_word(std::string_view(system->name) == "LSF" ? lsf_job(read) : job));
}

}  // namespace welkin::launch
