// SPDX-License-Identifier: Apache-2.0
// The one place that writes to the user's terminal (or to the pipe or file in its stead): whole lines, and at most one status
// line that stays at the bottom. Thread-safe. Passed down by the verb; nothing else of the library prints.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace welkin::observe {

struct ConsoleOptions {
  int fd = 2;                      // not owned; 2 is stderr, as the tutorials' log goes there
  std::optional<bool> terminal{};  // empty: ask the system
  int columns = 0;                 // 0: ask the system at each status line
};

class Console {
 public:
  explicit Console(ConsoleOptions options = {});
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  bool is_terminal() const { return terminal_; }
  int columns() const;

  // Writes text and a line end in one go; a status line moves below it. What the system refuses is dropped: no console, no run
  // lost. After a reader that went away (EPIPE) nothing is written any more.
  void line(std::string_view text);

  // Shows or replaces the status line, cut to the width; nothing where there is no terminal.
  void status(std::string_view text);
  void clear_status();

 private:
  void put(const std::string& bytes);

  ConsoleOptions options_;
  bool terminal_ = false;
  bool closed_ = false;  // by the reader at the other end
  std::mutex mutex_;
  std::string status_;
};

}  // namespace welkin::observe
