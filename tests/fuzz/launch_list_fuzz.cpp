// SPDX-License-Identifier: Apache-2.0
// libFuzzer: what batch systems and the kernel write of a job: lists of hosts, tasks and CPUs, the time that is left. The first
// byte says which; no text may crash it, or stand for more hosts than there may be.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/error.h"
#include "launch/affinity.h"
#include "launch/batch/scheduler.h"
#include "launch/host_list.h"

namespace {

namespace launch = welkin::launch;

// A list of a million hosts is legal, and takes seconds here.
bool has_long_number(std::string_view text, size_t longest) {
  size_t digits = 0, most = 0;
  for (const char c : text) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    most = std::max(most, digits);
  }
  return most > longest;
}

void expand_hosts(std::string_view text) {
  const auto brackets = std::ranges::count(text, '[');
  if (brackets > 2 || has_long_number(text, brackets == 2 ? 1 : 3)) return;
  for (const std::string& host : launch::expand_host_list(text, "FUZZ")) {
    if (host.find_first_of("[],") != std::string::npos) std::abort();
  }
}

// What stands before the first NUL is the variable, what follows is what the command of the system prints.
void ask_time(std::string_view text, const char* system) {
  const std::string end(text.substr(0, text.find('\0')));
  const std::string printed(text.substr(std::min(text.size(), end.size() + 1)));
  const auto read = [&](const char* name) -> const char* {
    if (std::string_view(name) == system) return "7";
    return std::string_view(name) == "SLURM_JOB_END_TIME" && !end.empty() ? end.c_str() : nullptr;
  };
  (void)launch::time_left(
      read, [&](const std::string&) { return printed; }, 1'700'000'000);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0] % 7) {
      case 0:
        expand_hosts(text);
        break;
      case 1:
        if (!has_long_number(text, 3)) (void)launch::expand_task_counts(text, "FUZZ");
        break;
      case 2: {
        const auto cpus = launch::parse_cpu_list(text, "fuzz");
        if (launch::parse_cpu_list(launch::cpu_list_text(cpus), "again") != cpus) std::abort();
        break;
      }
      case 3:
        ask_time(text, "SLURM_JOB_ID");
        break;
      case 4:
        ask_time(text, "FLUX_JOB_ID");
        break;
      case 5:
        ask_time(text, "LSB_JOBID");
        break;
      default:
        ask_time(text, "PBS_JOBID");
    }
  } catch (const welkin::ConfigError&) {  // the one legal way to refuse
  }
  return 0;
}
