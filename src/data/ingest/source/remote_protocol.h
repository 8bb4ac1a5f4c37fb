// SPDX-License-Identifier: Apache-2.0
// Internal to remote.cpp and serve.cpp: the messages over the pipes. Both ends are of one build, on one machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace welkin::data::ingest {

enum class RemoteCall : int32_t { Open, Scan, Variables, Planes, Grid, Coordinates, ReadPlane };

// Open: the path follows, of `second` bytes. Others: the arguments of the function.
struct RemoteRequest {
  RemoteCall call = RemoteCall::Open;
  int32_t format = 0;
  int64_t first = 0, second = 0, third = 0;
};

// `bytes` of results follow. A child that has just started says it is there with its versions.
struct RemoteReply {
  int32_t code = 0;
  int32_t unused = 0;
  int64_t bytes = 0;
  char error[512]{};
};

// Seconds that reading all headers of a file of so many bytes may take.
constexpr int64_t remote_patience_s(uint64_t file_bytes) { return 4 + static_cast<int64_t>(file_bytes >> 23); }

// Transfers all bytes; false: the other side is gone.
bool receive_all(int from, std::span<std::byte> bytes);
bool send_all(int to, std::span<const std::byte> bytes);

}  // namespace welkin::data::ingest
