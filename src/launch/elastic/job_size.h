// SPDX-License-Identifier: Apache-2.0
// The size of an elastic job: every node's launcher must have been started with the same numbers, since each counts slots by
// them.
#pragma once

#include <string>

#include "launch/elastic/agent.h"
#include "launch/elastic/job_board.h"

namespace welkin::launch {

void tell_size(JobBoard& board, const ElasticPlan& plan);

// The node whose numbers differ from this one's, and both: on the first node of all others, elsewhere of the first. Empty if
// those that have told theirs agree.
std::string size_problem(JobBoard& board, const ElasticPlan& plan);

inline constexpr const char* kSizeRemedy = "Give every node the same -n and --nnodes";

}  // namespace welkin::launch
