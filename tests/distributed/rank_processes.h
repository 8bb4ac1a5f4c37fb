// SPDX-License-Identifier: Apache-2.0
// Tests that run in several real processes over the loopback interface. A body is registered by name; run_on_ranks() hands it to
// one process of this program per rank (spawned, never forked: torch is loaded), and fails with the output of every rank that
// failed. A process whose body passed takes the next one. No test hangs: a rank that is late prints its last collectives and
// ends, and the parent kills what is left.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "parallel/comm/connection.h"

namespace welkin::parallel {

using RankBody = std::function<void(Connection&)>;

// A namespace-scope object per body. `deadline_s` of rendezvous and collectives.
struct RankTest {
  RankTest(const char* name, RankBody body, int64_t deadline_s = 30);
};

// GoogleTest failures of any rank are failures of the calling test.
void run_on_ranks(const std::string& body, int64_t world_size, int64_t limit_s = 60);

// One file per test and process for results that the parent reads.
std::string rank_scratch_folder();

}  // namespace welkin::parallel
