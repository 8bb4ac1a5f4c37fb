// SPDX-License-Identifier: Apache-2.0
// Tests real connections between the ranks of a job: each rank reaches each on ports of the system's choice, as collectives do.
// Rank 0 also measures how long a message takes, how fast bytes go, and how far apart the nodes' clocks are.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "launch/doctor/finding.h"
#include "launch/ranks.h"

namespace welkin::launch {

// The facts that one rank brings to the test.
struct LinkRequest {
  RankInfo place;
  std::string host;       // name of its machine
  std::string page_json;  // its own findings, for rank 0
  std::chrono::milliseconds timeout{30000};
};

struct LinkReport {
  Findings findings;               // of the connections; filled on rank 0
  std::vector<std::string> pages;  // of the others: page_json; filled on rank 0
  std::vector<std::string> hosts;  // the hosts of `pages`
};

// All ranks call it. A failed connection is a finding of rank 0; a rank that does not even reach rank 0 throws CommError.
LinkReport test_links(const LinkRequest& request);

}  // namespace welkin::launch
