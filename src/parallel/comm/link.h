// SPDX-License-Identifier: Apache-2.0
// A link that is emulated: what a network costs that this machine does not have. Every transfer of a rank ends no earlier than
// the latency and its bytes over the bandwidth after it began, one after the other, and takes no core while it waits.
#pragma once

#include <atomic>
#include <cstdint>

namespace welkin::parallel {

struct EmulatedLink {
  double latency_s = 0;
  double bytes_per_second = 0;

  // What it has carried so far, over all groups of the rank.
  std::atomic<int64_t> bytes = 0;
  std::atomic<int64_t> busy_ns = 0;
};

}  // namespace welkin::parallel
