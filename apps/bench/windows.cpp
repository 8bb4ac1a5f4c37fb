// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/windows.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "apps/cli/flags.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::apps {
namespace {

constexpr int kPollMs = 100;
constexpr size_t kLongestLine = 64;
constexpr double kMostSeconds = 86400;
constexpr int64_t kMostWindows = 86400;

double seconds_of(const std::string& line) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), seconds);
  if (error == std::errc() && end == line.data() + line.size() && seconds > 0 && seconds <= kMostSeconds) return seconds;
  throw ConfigError("bench", cat("--serve was asked for a window of no usable length: \"", line.substr(0, kLongestLine), "\""),
                    cat("Write seconds, up to ", kMostSeconds, ", as a line"));
}

}  // namespace

WindowServer::WindowServer(std::string key, std::ostream& out, std::function<bool()> interrupted)
    : key_(std::move(key)), out_(out), interrupted_(std::move(interrupted)) {}

std::optional<double> WindowServer::next(std::optional<double> rate) {
  out_ << (rate ? nlohmann::json{{key_, *rate}} : nlohmann::json{{"ready", true}}).dump() << std::endl;
  const std::optional<std::string> line = read_line();
  if (!line) return std::nullopt;
  return seconds_of(*line);
}

// An unfinished last line counts as a line, too. Waits are short, since a signal does not end a read.
std::optional<std::string> WindowServer::read_line() {
  for (;;) {
    if (const size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    if (unread_.size() > kLongestLine) return std::exchange(unread_, {});
    if (interrupted_ && interrupted_()) return std::nullopt;
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    const int ready = poll(&input, 1, kPollMs);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    std::array<char, 256> piece{};
    const ssize_t count = ready < 0 ? -1 : read(STDIN_FILENO, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count > 0) {
      unread_.append(piece.data(), static_cast<size_t>(count));
      continue;
    }
    if (unread_.empty()) return std::nullopt;
    return std::exchange(unread_, {});
  }
}

bench::WindowOptions window_options(const config::CommandLine& line) {
  bench::WindowOptions windows;
  windows.windows = whole_flag(line, "windows", windows.windows, 1, kMostWindows);
  windows.window_seconds = number_flag(line, "window_seconds", windows.window_seconds, 0, kMostSeconds);
  windows.warmup_seconds = number_flag(line, "warmup_seconds", windows.warmup_seconds, 0, kMostSeconds);
  return windows;
}

void check_serving(const config::CommandLine& line, const BenchMode& mode, int64_t ranks) {
  if (!has_flag(line, "serve")) return;
  if (mode.selected_by == SelectedBy::Flag || mode.name == "all") {
    throw ConfigError("bench", cat("windows that are asked for are of one kind: --serve beside ", mode.name),
                      "Give --mode io, synthetic or full");
  }
  if (ranks > 1)
    throw ConfigError("bench", cat("--serve is for one process: ranks=", ranks), "Leave --serve or the launcher out");
  for (const char* flag : {"windows", "window_seconds"}) {
    if (line.extra.contains(flag))
      throw ConfigError("bench", cat("with --serve every line on standard input is a window: --", flag), "Leave it out");
  }
}

}  // namespace welkin::apps
