// SPDX-License-Identifier: Apache-2.0
#include "train/inject/damage.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>

#include "core/file_descriptor.h"

namespace welkin::train {
namespace {

namespace fs = std::filesystem;

// The number behind "step_"; -1 for another name.
int64_t number_of_checkpoint(const fs::path& folder) {
  const std::string name = folder.filename().string();
  int64_t step = -1;
  if (name.starts_with("step_")) {
    const auto [end, problem] = std::from_chars(name.data() + 5, name.data() + name.size(), step);
    if (problem != std::errc() || end != name.data() + name.size()) step = -1;
  }
  return step;
}

fs::path newest_in(const fs::path& checkpoints) {
  fs::path newest;
  int64_t most = -1;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(checkpoints, absent)) {
    const int64_t step = number_of_checkpoint(entry.path());
    if (step <= most) continue;
    most = step;
    newest = entry.path();
  }
  return newest;
}

fs::path largest_in(const fs::path& folder) {
  fs::path largest;
  uintmax_t most = 0;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(folder, absent)) {
    if (entry.path().extension() != ".safetensors" || entry.file_size() <= most) continue;
    most = entry.file_size();
    largest = entry.path();
  }
  return largest;
}

void flip_bit(const fs::path& path, uintmax_t offset) {
  const FileDescriptor file = open_file(path, O_RDWR);
  unsigned char byte = 0;
  const auto place = static_cast<off_t>(offset);
  if (::pread(file.get(), &byte, 1, place) != 1) return;
  byte ^= 1U;
  if (::pwrite(file.get(), &byte, 1, place) != 1) throw file_error("write", path, errno);
}

bool is_connection(int fd) {
  sockaddr_storage peer{};
  socklen_t length = sizeof(peer);
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return false;
  return peer.ss_family == AF_INET || peer.ss_family == AF_INET6;
}

}  // namespace

std::optional<fs::path> damage_newest_checkpoint(const fs::path& checkpoints, FileDamage damage) {
  const fs::path folder = newest_in(checkpoints);
  const fs::path path = folder.empty() ? fs::path() : largest_in(folder);
  if (path.empty()) return {};
  const uintmax_t half = fs::file_size(path) / 2;
  damage == FileDamage::Truncate ? fs::resize_file(path, half) : flip_bit(path, half);
  return path;
}

int drop_connections() {
  int dropped = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd", ignored)) {
    const int fd = std::stoi(entry.path().filename().string());
    if (is_connection(fd) && ::shutdown(fd, SHUT_RDWR) == 0) ++dropped;
  }
  return dropped;
}

}  // namespace welkin::train
