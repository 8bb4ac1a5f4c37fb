// SPDX-License-Identifier: Apache-2.0
#include "observe/log/event_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/fault/wall_clock.h"
#include "core/stopwatch.h"
#include "core/text.h"

namespace welkin::observe {
namespace {

nlohmann::ordered_json json_value(const EventValue& value) {
  if (const auto* number = std::get_if<double>(&value); number != nullptr && !std::isfinite(*number)) {
    return std::isnan(*number) ? "nan" : *number > 0 ? "inf" : "-inf";
  }
  return std::visit([](const auto& held) { return nlohmann::ordered_json(held); }, value);
}

int64_t milliseconds_now() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(wall_now().time_since_epoch()).count();
}

// A lock of the whole file. On a network file system it also brings the file's present length. A holder that is stopped must not
// stop others, and some file systems have no locks: then there is none after a while.
class AppendLock {
 public:
  explicit AppendLock(const FileDescriptor& file) : file_(file) {
    constexpr double kPatienceSeconds = 1;
    const Stopwatch waited;
    while (!(is_held_ = set(F_WRLCK)) && (errno == EAGAIN || errno == EACCES || errno == EINTR)) {
      if (waited.seconds() > kPatienceSeconds) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  ~AppendLock() {
    if (is_held_) set(F_UNLCK);
  }
  AppendLock(const AppendLock&) = delete;
  AppendLock& operator=(const AppendLock&) = delete;

  bool is_held() const { return is_held_; }

 private:
  bool set(int16_t kind) const {
    struct flock whole {};
    whole.l_type = kind;
    whole.l_whence = SEEK_SET;
    return ::fcntl(file_.get(), F_OFD_SETLK, &whole) == 0;
  }

  const FileDescriptor& file_;
  bool is_held_ = false;
};

bool ends_within_a_line(const FileDescriptor& file, off_t size) {
  char last = '\n';
  return size > 0 && ::pread(file.get(), &last, 1, size - 1) == 1 && last != '\n';
}

// A disk that becomes full may take half of a line: that is taken back.
void append_line(const FileDescriptor& file, const std::filesystem::path& path, const std::string& line) {
  const AppendLock lock(file);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw file_error("inspect", path, errno);
  try {
    write_fully(file, path, ends_within_a_line(file, status.st_size) ? "\n" + line : line);
  } catch (const DataError&) {
    [[maybe_unused]] const int ignored = lock.is_held() ? ::ftruncate(file.get(), status.st_size) : 0;
    throw;
  }
}

}  // namespace

std::string utc_text(int64_t milliseconds) {
  const std::time_t seconds = milliseconds / 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> date{};
  const size_t length = std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  std::array<char, 8> fraction{};
  std::snprintf(fraction.data(), fraction.size(), ".%03dZ", static_cast<int>(milliseconds % 1000));
  return cat(std::string_view(date.data(), length), fraction.data());
}

std::string event_line(int64_t milliseconds, std::string_view event, int64_t step, int64_t rank, const EventFields& fields) {
  nlohmann::ordered_json json = {{"time", utc_text(milliseconds)}, {"event", event}, {"step", step}, {"rank", rank}};
  for (const auto& [name, value] : fields) json[name] = json_value(value);
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

bool EventLog::add(std::string_view event, int64_t step, const EventFields& fields) {
  const std::lock_guard lock(mutex_);
  ++counts_[std::string(event)];
  try {
    if (!file_) file_ = open_file(path_, O_RDWR | O_CREAT | O_APPEND);
    append_line(file_, path_, event_line(milliseconds_now(), event, step, rank_, fields));
    return true;
  } catch (const DataError&) {
    return false;
  }
}

std::map<std::string, int64_t> EventLog::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace welkin::observe
