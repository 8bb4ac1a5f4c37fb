// SPDX-License-Identifier: Apache-2.0
#include "launch/doctor/link_message.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "core/text.h"

namespace welkin::launch {

void LinkMessages::fail(const std::string& reason) {
  throw CommError("doctor", cat("the connection does not carry the test: peer=", peer_, ", reason=", reason),
                  "Look for a firewall between the nodes, and for what the other rank printed");
}

void LinkMessages::wait(short events) {
  pollfd wanted{.fd = socket_.get(), .events = events, .revents = 0};
  if (poll(&wanted, 1, static_cast<int>(timeout_.count())) != 1) fail("nothing within the time");
}

void LinkMessages::send_bytes(const char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t done = ::send(socket_.get(), bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done > 0) {
      bytes += done;
      count -= static_cast<size_t>(done);
    } else if (errno == EAGAIN || errno == EINTR) {
      wait(POLLOUT);
    } else {
      fail(std::strerror(errno));
    }
  }
}

void LinkMessages::receive_bytes(char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t done = recv(socket_.get(), bytes, count, MSG_DONTWAIT);
    if (done > 0) {
      bytes += done;
      count -= static_cast<size_t>(done);
    } else if (done == 0) {
      fail("closed by the other side");
    } else if (errno == EAGAIN || errno == EINTR) {
      wait(POLLIN);
    } else {
      fail(std::strerror(errno));
    }
  }
}

void LinkMessages::send(const std::string& message) {
  const auto length = static_cast<uint32_t>(message.size());
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  bytes += message;  // one packet, where it is small
  send_bytes(bytes.data(), bytes.size());
}

std::string LinkMessages::receive(size_t limit_bytes) {
  uint32_t length = 0;
  receive_bytes(reinterpret_cast<char*>(&length), sizeof length);
  if (length > limit_bytes) fail("no message of the doctor");
  std::string message(length, '\0');
  receive_bytes(message.data(), message.size());
  return message;
}

}  // namespace welkin::launch
