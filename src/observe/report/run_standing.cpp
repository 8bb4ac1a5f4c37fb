// SPDX-License-Identifier: Apache-2.0
#include "observe/report/run_standing.h"

#include <cerrno>
#include <csignal>
#include <limits>

#include "core/process/host.h"

namespace welkin::observe {
namespace {

// EPERM: another user's process exists.
bool is_alive(int64_t process) { return ::kill(static_cast<pid_t>(process), 0) == 0 || errno == EPERM; }

bool is_of_this_host(const RunFacts& facts) {
  return facts.process > 0 && facts.process <= std::numeric_limits<pid_t>::max() && facts.host == host_name();
}

}  // namespace

bool may_go_on(const std::string& state) { return state.empty() || state == "starting" || state == "running"; }

std::string standing_of(const RunHistory& run) {
  const RunFacts& facts = run.facts;
  if (!may_go_on(facts.state)) return facts.state;
  if (is_of_this_host(facts) && !is_alive(facts.process)) return "killed";
  const bool is_silent = std::filesystem::file_time_type::clock::now() - run.last_write > kSilence;
  // A run without a status may have finished long ago.
  return is_silent && !facts.state.empty() ? "silent" : facts.state;
}

}  // namespace welkin::observe
