// SPDX-License-Identifier: Apache-2.0
#include "parallel/elastic/open_connections.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>

namespace welkin::parallel {
namespace {

bool is_network_peer(int fd) {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return false;
  return peer.ss_family == AF_INET || peer.ss_family == AF_INET6;
}

}  // namespace

std::set<int> open_connections() {
  std::set<int> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    const std::string name = entry.path().filename().string();
    int fd = -1;
    if (std::from_chars(name.data(), name.data() + name.size(), fd).ec != std::errc()) continue;
    if (is_network_peer(fd)) found.insert(fd);
  }
  return found;
}

int shut_down_since(const std::set<int>& before) {
  int count = 0;
  for (const int fd : open_connections()) {
    if (!before.contains(fd) && ::shutdown(fd, SHUT_RDWR) == 0) ++count;
  }
  return count;
}

}  // namespace welkin::parallel
