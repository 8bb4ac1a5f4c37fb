// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks of the doctor: a length and bytes, each sent and received whole within a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "core/file_descriptor.h"

namespace welkin::launch {

// Throws CommError when the other side closes, stalls beyond the time, or sends more than `limit_bytes`.
class LinkMessages {
 public:
  LinkMessages(FileDescriptor socket, std::string peer, std::chrono::milliseconds timeout)
      : socket_(std::move(socket)), peer_(std::move(peer)), timeout_(timeout) {}

  void send(const std::string& message);
  std::string receive(size_t limit_bytes);
  int socket() const { return socket_.get(); }

 private:
  void wait(short events);
  void send_bytes(const char* bytes, size_t count);
  void receive_bytes(char* bytes, size_t count);
  [[noreturn]] void fail(const std::string& reason);

  FileDescriptor socket_;
  std::string peer_;
  std::chrono::milliseconds timeout_;
};

}  // namespace welkin::launch
