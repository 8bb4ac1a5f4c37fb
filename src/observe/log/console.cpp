// SPDX-License-Identifier: Apache-2.0
#include "observe/log/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/text.h"

namespace welkin::observe {
namespace {

constexpr std::string_view kEraseLine = "\r\x1b[K";

}  // namespace

Console::Console(ConsoleOptions options) : options_(options), terminal_(options.terminal.value_or(::isatty(options.fd) == 1)) {}

Console::~Console() { clear_status(); }

int Console::columns() const {
  if (options_.columns > 0) return options_.columns;
  winsize size{};
  return ::ioctl(options_.fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void Console::line(std::string_view text) {
  const std::lock_guard lock(mutex_);
  put(status_.empty() ? cat(text, "\n") : cat(kEraseLine, text, "\n", status_));
}

void Console::status(std::string_view text) {
  if (!terminal_) return;
  // Leaves one column free: a full last column makes some terminals wrap.
  const auto room = static_cast<size_t>(std::max(columns() - 1, 1));
  const std::lock_guard lock(mutex_);
  status_ = std::string(text.substr(0, room));
  put(cat(kEraseLine, status_));
}

void Console::clear_status() {
  const std::lock_guard lock(mutex_);
  if (status_.empty()) return;
  status_.clear();
  put(std::string(kEraseLine));
}

void Console::put(const std::string& bytes) {
  std::string_view rest = bytes;
  while (!rest.empty() && !closed_) {
    const ssize_t written = ::write(options_.fd, rest.data(), rest.size());
    if (written < 0 && errno == EPIPE) closed_ = true;
    if (written < 0 && errno != EINTR) return;
    if (written > 0) rest.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace welkin::observe
