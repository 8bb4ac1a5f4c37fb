// SPDX-License-Identifier: Apache-2.0
// The log of a run, in the format of Python's logging in the tutorials: `YYYY-MM-DD HH:MM:SS,mmm - root - INFO -
// message`. Goes to the console, and after open_file() also to a file. Thread-safe.
#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "core/file_descriptor.h"
#include "observe/log/console.h"

namespace welkin::observe {

enum class LogLevel { Debug, Info, Warning, Error };

struct RunLogOptions {
  bool enabled = true;  // false on the ranks that do not log: every call is then a no-op
  LogLevel level = LogLevel::Info;
};

class RunLog {
 public:
  // `console` must outlive the log.
  explicit RunLog(Console& console, RunLogOptions options = {}) : console_(console), options_(options) {}

  // From now on every line is also appended to this file, which is created if absent. Throws DataError.
  void open_file(const std::filesystem::path& path);

  void debug(std::string_view message) { log(LogLevel::Debug, message); }
  void info(std::string_view message) { log(LogLevel::Info, message); }
  void warning(std::string_view message) { log(LogLevel::Warning, message); }
  void error(std::string_view message) { log(LogLevel::Error, message); }
  void log(LogLevel level, std::string_view message);

  bool enabled(LogLevel level = LogLevel::Info) const { return options_.enabled && level >= options_.level; }
  Console& console() const { return console_; }

 private:
  void append_to_file(const std::string& line);

  Console& console_;
  RunLogOptions options_;
  std::mutex mutex_;
  std::filesystem::path path_;
  FileDescriptor file_;
  bool file_failing_ = false;
};

// The line without its line end; `milliseconds` since 1970, shown in local time. "\n" inside a message is kept; later lines
// have no prefix.
std::string format_log_line(int64_t milliseconds, LogLevel level, std::string_view message);

}  // namespace welkin::observe
