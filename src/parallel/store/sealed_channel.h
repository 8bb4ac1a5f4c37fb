// SPDX-License-Identifier: Apache-2.0
// One end of a connection whose messages are encrypted and authenticated (ChaCha20-Poly1305, RFC 8439). Both ends contribute a
// nonce to the connection's keys, one for each direction, and messages are counted: whoever lacks the job's key, or plays an
// old connection back, produces no message that opens. Pure; knows no socket.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "parallel/store/job_key.h"

namespace welkin::parallel {

enum class ChannelSide { Client, Server };

class SealedChannel {
 public:
  static constexpr size_t kOverhead = 16;  // bytes that a sealed message is longer

  SealedChannel(const JobKey& key, const Nonce& of_client, const Nonce& of_server, ChannelSide side);

  std::string seal(std::string_view message);
  // Nothing when it is not the other end's next message. The channel is of no use afterwards.
  std::optional<std::string> open(std::string_view sealed);

 private:
  JobKey to_seal_{}, to_open_{};
  uint64_t sealed_ = 0, opened_ = 0;
};

}  // namespace welkin::parallel
