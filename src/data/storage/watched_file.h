// SPDX-License-Identifier: Apache-2.0
// A read-only file that many threads copy from. If another process truncates, replaces or removes it, the next read is a
// DataError that says so, never a crash and never silently other data.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "core/file_descriptor.h"
#include "data/storage/bus_guard.h"
#include "data/storage/read_watch.h"

namespace welkin::data {

class WatchedFile {
 public:
  explicit WatchedFile(std::filesystem::path path);  // DataError when absent or not a regular file
  ~WatchedFile();
  WatchedFile(const WatchedFile&) = delete;
  WatchedFile& operator=(const WatchedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  uint64_t size() const { return mapping_.size(); }

  // Positional read of all of `out`. For long runs: no page faults, the kernel reads ahead.
  void read(uint64_t offset, std::span<std::byte> out) const;

  // Runs `copy(const std::byte* file)` under the guard of bus_guard.h. For short rows: no system call each. `offset` and
  // `bytes` are the range that it reads, for the watch over stalled reads and for the count.
  template <typename Copy>
  void copy(uint64_t offset, uint64_t bytes, const Copy& copy_from) const {
    const ReadMark mark(path_, offset);
    count(bytes);
    if (!copy_guarded(mapping_, [&] { copy_from(mapping_.data()); })) report_lost_page(offset, bytes);
    check_unchanged(offset);
  }

  // One fstat: throws when the file was written to, truncated, removed or replaced since it was opened. `offset` is for the text.
  void check_unchanged(uint64_t offset) const;

  // Bytes asked of this file so far, by all threads.
  uint64_t bytes_requested() const { return requested_.load(std::memory_order_relaxed); }

 private:
  void count(uint64_t bytes) const { requested_.fetch_add(bytes, std::memory_order_relaxed); }
  [[noreturn]] void report_change(uint64_t offset) const;
  [[noreturn]] void report_lost_page(uint64_t offset, uint64_t bytes) const;

  std::filesystem::path path_;
  FileDescriptor descriptor_;
  struct stat opened_ {};
  std::span<const std::byte> mapping_;
  mutable std::atomic<uint64_t> requested_ = 0;
};

}  // namespace welkin::data
