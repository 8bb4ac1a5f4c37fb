// SPDX-License-Identifier: Apache-2.0
// Findings from the environment of this process's job: its launcher, its threads, its secret; and the network that it may use.
#pragma once

#include "launch/doctor/finding.h"
#include "launch/ranks.h"

namespace welkin::launch {

// `read` is getenv, or a test's table. Variables of a launcher that contradict each other are a finding.
Findings job_findings(const ReadVariable& read);

// Interfaces that are up and have an address, with their rate, and InfiniBand.
Findings network_findings(const ReadVariable& read);

}  // namespace welkin::launch
