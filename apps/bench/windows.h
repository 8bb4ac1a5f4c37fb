// SPDX-License-Identifier: Apache-2.0
// welkin bench --serve: windows in turns with another program, which asks for each window.
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>

#include "apps/bench/modes.h"

namespace welkin::apps {

// Reads one line per window from standard input: its seconds. Writes a line of JSON to `out` when ready, and after each window:
//   {"ready":true}
//   {"synthetic_samples_per_s":12.5}
class WindowServer {
 public:
  // `key` names the rate. `interrupted` is called while no line comes, and outlives the server; it may be empty.
  WindowServer(std::string key, std::ostream& out, std::function<bool()> interrupted);

  // For WindowOptions::next_window. Returns nothing at the end of input and on interruption. ConfigError for a line without a
  // valid window length.
  std::optional<double> next(std::optional<double> rate);

 private:
  std::optional<std::string> read_line();

  std::string key_;
  std::ostream& out_;
  std::function<bool()> interrupted_;
  std::string unread_;  // part of standard input behind the last line
};

// Options from --windows, --window_seconds and --warmup_seconds. ConfigError for unusable numbers.
bench::WindowOptions window_options(const config::CommandLine& line);

// ConfigError unless --serve goes with one mode of one process.
void check_serving(const config::CommandLine& line, const BenchMode& mode, int64_t ranks);

}  // namespace welkin::apps
