// SPDX-License-Identifier: Apache-2.0
#include "observe/log/run_log.h"

#include <fcntl.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "core/fault/wall_clock.h"
#include "core/text.h"

namespace welkin::observe {
namespace {

// The names of levels in Python.
std::string_view level_name(LogLevel level) {
  constexpr std::array<std::string_view, 4> kNames{"DEBUG", "INFO", "WARNING", "ERROR"};
  return kNames[static_cast<size_t>(level)];
}

int64_t now_milliseconds() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(wall_now().time_since_epoch()).count();
}

}  // namespace

std::string format_log_line(int64_t milliseconds, LogLevel level, std::string_view message) {
  const std::time_t seconds = milliseconds / 1000;
  std::tm local{};
  localtime_r(&seconds, &local);
  std::array<char, 32> date{};
  const size_t length = std::strftime(date.data(), date.size(), "%Y-%m-%d %H:%M:%S", &local);
  std::array<char, 8> fraction{};
  std::snprintf(fraction.data(), fraction.size(), ",%03d", static_cast<int>(milliseconds % 1000));
  return cat(std::string_view(date.data(), length), fraction.data(), " - root - ", level_name(level), " - ", message);
}

void RunLog::open_file(const std::filesystem::path& path) {
  if (!options_.enabled) return;
  FileDescriptor file = welkin::open_file(path, O_WRONLY | O_CREAT | O_APPEND);
  const std::lock_guard lock(mutex_);
  file_ = std::move(file);
  path_ = path;
  file_failing_ = false;
}

void RunLog::log(LogLevel level, std::string_view message) {
  if (!enabled(level)) return;
  const std::string line = format_log_line(now_milliseconds(), level, message);
  const std::lock_guard lock(mutex_);  // so that console and file have the same order of lines
  console_.line(line);
  if (file_) append_to_file(line + "\n");
}

// An error of the log file must not end a run that may have lasted days. It is reported once; every line tries again.
void RunLog::append_to_file(const std::string& line) {
  try {
    write_fully(file_, path_, line);
    file_failing_ = false;
  } catch (const DataError& error) {
    if (!file_failing_) console_.line(format_log_line(now_milliseconds(), LogLevel::Error, error.what()));
    file_failing_ = true;
  }
}

}  // namespace welkin::observe
