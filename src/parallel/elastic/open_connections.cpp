// SPDX-License-Identifier: Apache-2.0
#include "parallel/elastic/open_connections.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <charconv>
#include <filesystem>
#include <map>
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

std::map<ino_t, int> connected_sockets() {
  std::map<ino_t, int> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    const std::string name = entry.path().filename().string();
    int fd = -1;
    if (std::from_chars(name.data(), name.data() + name.size(), fd).ec != std::errc()) continue;
    struct stat facts {};
    if (is_network_peer(fd) && ::fstat(fd, &facts) == 0) found[facts.st_ino] = fd;
  }
  return found;
}

}  // namespace

std::set<ino_t> open_connections() {
  std::set<ino_t> inodes;
  for (const auto& [inode, fd] : connected_sockets()) inodes.insert(inode);
  return inodes;
}

int shut_down_since(const std::set<ino_t>& before) {
  int count = 0;
  for (const auto& [inode, fd] : connected_sockets()) {
    if (!before.contains(inode) && ::shutdown(fd, SHUT_RDWR) == 0) ++count;
  }
  return count;
}

}  // namespace welkin::parallel
