// SPDX-License-Identifier: Apache-2.0
// Whether all ranks are there and alike: each writes what it is on the notice board, rank 0 reads all and gives the verdict,
// which all read. Knows no sockets.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "parallel/comm/call_desk.h"

namespace welkin::parallel {

struct RollCall {
  int64_t rank = 0;
  int64_t world_size = 1;
  std::string host;           // "node1, process 1234", for messages
  std::string program;        // hash
  std::string configuration;  // text
};

// Returns when rank 0 has found all. Throws on every rank that is there, at the latest some seconds after `patience`: CommError
// naming the missing ranks, ConfigError naming a rank that differs and in what.
void call_roll(NoticeBoard& board, const RollCall& self, std::chrono::milliseconds patience);

}  // namespace welkin::parallel
