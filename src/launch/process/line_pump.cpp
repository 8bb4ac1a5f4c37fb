// SPDX-License-Identifier: Apache-2.0
#include "launch/process/line_pump.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace welkin::launch {
namespace {

constexpr size_t kLongestLine = size_t{1} << 20;  // a longer one is broken, so that memory stays bounded

// A reader that has closed its end (`| head`) must not stop the run.
void write_or_drop(int target, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(target, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {  // a terminal that others use, too, may be set not to block
      pollfd room{.fd = target, .events = POLLOUT, .revents = 0};
      ::poll(&room, 1, -1);
      continue;
    }
    if (written <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

void LinePump::pump() {
  std::array<char, 65536> buffer{};
  const ssize_t count = read(source_.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count > 0) held_.append(buffer.data(), static_cast<size_t>(count));
  write_lines(count <= 0);
  if (count <= 0) source_ = FileDescriptor();
}

void LinePump::write_lines(bool at_end) {
  std::string out;
  size_t begin = 0;
  for (size_t end = held_.find('\n'); end != std::string::npos; end = held_.find('\n', begin)) {
    out.append(mark_).append(held_, begin, end - begin + 1);
    begin = end + 1;
  }
  held_.erase(0, begin);
  if (!held_.empty() && (at_end || held_.size() > kLongestLine)) {
    out.append(mark_).append(held_).append("\n");
    held_.clear();
  }
  write_or_drop(target_, out);  // one call, so that lines of ranks do not mix
}

}  // namespace welkin::launch
