// SPDX-License-Identifier: Apache-2.0
// Checks if a run with the status "running" still runs: a killed process cannot change its status.
#pragma once

#include <chrono>
#include <string>

#include "observe/report/run_history.h"

namespace welkin::observe {

// Longest silence of a run whose process cannot be checked: validation and large checkpoints take their time.
inline constexpr std::chrono::minutes kSilence{30};

// True for "starting", "running" and an empty state.
bool may_go_on(const std::string& state);

// State of a run: its own, except for one that may go on. That is "killed" if its process was on this host and is gone, and
// "silent" if nothing was written into its folder for kSilence.
std::string standing_of(const RunHistory& run);

}  // namespace welkin::observe
