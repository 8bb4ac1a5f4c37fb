// SPDX-License-Identifier: Apache-2.0
// All output to the user's terminal (or the pipe or file in its place): whole lines, and at most one status line that stays
// at the bottom. Thread-safe. The verb passes it down; nothing else in the library prints.
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

  // Writes text and a line end at once; a status line moves below it. Errors are ignored: a run must not end for its console.
  // After the reader has gone (EPIPE) nothing more is written.
  void line(std::string_view text);

  // Shows or replaces the status line, cut to the width. Does nothing without a terminal.
  void status(std::string_view text);
  void clear_status();

 private:
  void put(const std::string& bytes);

  ConsoleOptions options_;
  bool terminal_ = false;
  bool closed_ = false;  // the reader at the other end has closed it
  std::mutex mutex_;
  std::string status_;
};

}  // namespace welkin::observe
