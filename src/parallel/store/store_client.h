// SPDX-License-Identifier: Apache-2.0
// One connection to the store. Not thread-safe: a thread that may wait needs its own connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "core/file_descriptor.h"
#include "parallel/store/sealed_channel.h"
#include "parallel/store/store_message.h"

namespace welkin::parallel {

class StoreClient {
 public:
  // Attempts to connect: an overloaded store closes connections unread, which looks like a wrong key.
  static constexpr int kAttempts = 7;

  // Connects within the time. CommError when nobody listens there, or when the server does not have the same key.
  StoreClient(const std::string& host, uint16_t port, const JobKey& key, std::chrono::milliseconds timeout);

  // The answer to a request. A request that waits, for request.number milliseconds, may take that much longer than the
  // connection's time. CommError if the server is gone or refuses the request; the connection is then unusable.
  StoreMessage call(const StoreMessage& request);

 private:
  void greet(const JobKey& key);
  void send_all(std::string_view bytes);
  std::string receive(size_t bytes, std::chrono::steady_clock::time_point until);
  [[noreturn]] void lose(const std::string& reason) const;
  [[noreturn]] void lose_closed(const std::string& reason);

  std::string where_;
  std::chrono::milliseconds timeout_;
  FileDescriptor socket_;
  std::optional<SealedChannel> channel_;
  bool is_known_ = false;  // the server has shown that it has the key
  bool was_closed_ = false;
};

}  // namespace welkin::parallel
