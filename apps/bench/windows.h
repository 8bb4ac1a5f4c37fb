// SPDX-License-Identifier: Apache-2.0
// welkin bench --serve: windows in turns with another program, which asks for each.
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>

#include "apps/bench/modes.h"

namespace welkin::apps {

// One line per window on standard input, its seconds; one line of JSON on `out` when the process is ready and after each window:
//   {"ready":true}
//   {"synthetic_samples_per_s":12.5}
class WindowServer {
 public:
  // `key` names the rate. `interrupted` is asked while no line comes, and outlives the server; it may be empty.
  WindowServer(std::string key, std::ostream& out, std::function<bool()> interrupted);

  // For WindowOptions::next_window. Nothing: the input has ended, or the run is interrupted. ConfigError for a line that is no
  // length of a window.
  std::optional<double> next(std::optional<double> rate);

 private:
  std::optional<std::string> read_line();

  std::string key_;
  std::ostream& out_;
  std::function<bool()> interrupted_;
  std::string unread_;  // of standard input, behind the last line
};

// --windows, --window_seconds and --warmup_seconds. ConfigError for what is no usable number.
bench::WindowOptions window_options(const config::CommandLine& line);

// --serve goes with one mode of one process alone: else a ConfigError.
void check_serving(const config::CommandLine& line, const BenchMode& mode, int64_t ranks);

}  // namespace welkin::apps
