// SPDX-License-Identifier: Apache-2.0
// One end of a connection whose messages are encrypted and authenticated (ChaCha20-Poly1305, RFC 8439). Both ends contribute a
// nonce to the connection's keys, one per direction, and messages are counted. So nobody without the job's key, and no replay
// of an old connection, can produce a message that opens. Pure; knows no socket.
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
  static constexpr size_t kOverhead = 16;  // bytes by which a sealed message is longer

  SealedChannel(const JobKey& key, const Nonce& of_client, const Nonce& of_server, ChannelSide side);

  std::string seal(std::string_view message);
  // Nothing if it is not the other end's next message; the channel is then unusable.
  std::optional<std::string> open(std::string_view sealed);

 private:
  JobKey to_seal_{}, to_open_{};
  uint64_t sealed_ = 0, opened_ = 0;
};

}  // namespace welkin::parallel
