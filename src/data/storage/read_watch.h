// SPDX-License-Identifier: Apache-2.0
// Marks the read that a thread is in, so that another thread can name a read that hangs (on a parallel file system).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>

namespace welkin::data {

// A read that has begun and not ended.
struct RunningRead {
  std::filesystem::path path;
  uint64_t offset = 0;
  double seconds = 0;  // since it began
};

// The present read of a reading thread. Written by that thread, read by any.
class ReadWatch {
 public:
  std::optional<RunningRead> running() const;

 private:
  friend class ReadMark;
  struct Place {
    const std::filesystem::path* path = nullptr;  // of a file that is open as long as the read runs
    uint64_t offset = 0;
    std::chrono::steady_clock::time_point since;
  };
  Place exchange(const Place& place);

  mutable std::mutex mutex_;
  Place place_;
};

// While it lives, reads of the calling thread are marked in `watch`.
class WatchThisThread {
 public:
  explicit WatchThisThread(ReadWatch& watch);
  ~WatchThisThread();
  WatchThisThread(const WatchThisThread&) = delete;
  WatchThisThread& operator=(const WatchThisThread&) = delete;

 private:
  ReadWatch* former_;
};

// Marks a read in the calling thread's watch, if it has one, as long as it lives. `path` outlives it.
class ReadMark {
 public:
  ReadMark(const std::filesystem::path& path, uint64_t offset);
  ~ReadMark();
  ReadMark(const ReadMark&) = delete;
  ReadMark& operator=(const ReadMark&) = delete;

 private:
  ReadWatch* watch_;
  ReadWatch::Place outer_;
};

}  // namespace welkin::data
