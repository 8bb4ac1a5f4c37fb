// SPDX-License-Identifier: Apache-2.0
// Whether a run that calls itself running still is: a process that was killed could not say so.
#pragma once

#include <chrono>
#include <string>

#include "observe/report/run_history.h"

namespace welkin::observe {

// How long a run that cannot be asked may write nothing: validation and large checkpoints take their time.
inline constexpr std::chrono::minutes kSilence{30};

// "starting", "running", or nothing at all: it may go on.
bool may_go_on(const std::string& state);

// Of a run that may go on: "killed" where its process is one of this host's and there is none, "silent" where nobody has written
// into its folder for kSilence; else the state that it says.
std::string standing_of(const RunHistory& run);

}  // namespace welkin::observe
