// SPDX-License-Identifier: Apache-2.0
// Blocks of memory, each of which ends at an inaccessible page. A library that reads or writes beyond the end of one, or
// touches one that it has freed, ends its process at once. So a damaged file ends the process that opens files first
// (apps/check_files.cpp), and does not corrupt the memory of a reader.
#pragma once

#include <cstddef>

namespace welkin::data {

// Addresses are used once, so that freed blocks stay inaccessible. Not thread-safe.
class GuardedHeap {
 public:
  static constexpr size_t kAddresses = size_t{8} << 30;  // reserved, not used: RLIMIT_AS counts them
  static constexpr size_t kAlignment = alignof(std::max_align_t);

  static constexpr size_t kLeast = 512;  // smaller blocks are mostly a library's own structs, and would take most of the time

  // Reserves the addresses. Before it, or when it fails, take() returns null.
  void open();

  // A block of zeros, or null where it is small, the addresses are used up or the system refuses. Accesses up to 15 bytes
  // beyond it are not noticed.
  void* take(size_t bytes);
  void give_back(void* block);

  bool owns(const void* block) const { return block >= begin_ && block < end_; }
  static size_t size_of(const void* block);  // the requested size

 private:
  std::byte* begin_ = nullptr;
  std::byte* end_ = nullptr;
  std::byte* next_ = nullptr;
};

}  // namespace welkin::data
