// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/text.h"

namespace welkin::parallel {

void Connection::announce_stop(const std::string& why) noexcept {
  try {
    kv_store().set(stopped_key(rank()), why);
    kv_store().set_if_absent(kStoppedKey, cat("rank ", rank(), " stopped: ", why));
  } catch (const std::exception&) {  // rank 0 is gone, and nobody is left to read it
  }
}

ListeningSocket listen_on(const std::string& address, uint16_t port) {
  const auto refuse = [&](int fd) {
    const std::string reason = std::strerror(errno);
    if (fd >= 0) close(fd);
    throw CommError("parallel", cat("cannot listen for the other ranks: address=", address, ", port=", port, ", reason=", reason),
                    "Give a free port and an address of this machine");
  };
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) refuse(fd);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(port);
  const int reuse = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
  errno = EINVAL;
  if (inet_pton(AF_INET, address.c_str(), &place.sin_addr) != 1) refuse(fd);
  auto* generic = reinterpret_cast<sockaddr*>(&place);  // NOLINT: the sockets interface
  socklen_t length = sizeof place;
  if (bind(fd, generic, length) != 0 || listen(fd, SOMAXCONN) != 0 || getsockname(fd, generic, &length) != 0) refuse(fd);
  return {fd, ntohs(place.sin_port)};
}

}  // namespace welkin::parallel
