// SPDX-License-Identifier: Apache-2.0
// Checks at the start that all ranks are present, agree on their number, and run the same program and configuration. Each rank
// writes its description to the key-value store. Rank 0 compares all of them and writes the result, which every rank reads. Knows
// no sockets.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "parallel/comm/collective_monitor.h"

namespace welkin::parallel {

struct RendezvousInfo {
  int64_t rank = 0;
  int64_t world_size = 1;
  int64_t local_size = 1, num_nodes = 1;  // for messages: from these the launcher has made the numbers above
  std::string host;                       // "node1, process 1234", for messages
  std::string program;                    // hash
  std::string configuration;              // text
};

// Returns when rank 0 has found all. Throws on every rank that is there, at the latest some seconds after `timeout`: CommError
// naming the missing ranks, ConfigError naming a rank that differs and in what.
void rendezvous(KeyValueStore& kv_store, const RendezvousInfo& self, std::chrono::milliseconds timeout);

}  // namespace welkin::parallel
