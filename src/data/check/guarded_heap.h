// SPDX-License-Identifier: Apache-2.0
// Blocks of memory each of which ends where a page begins that cannot be touched: a library that reads or writes beyond the end
// of one, or touches one that it has given back, ends its process at once. What a damaged file makes a library do is seen in the
// process that opens files first (apps/check_files.cpp), and not when a reader's memory is found in disorder.
#pragma once

#include <cstddef>

namespace welkin::data {

// Addresses are used once, so that what was given back stays out of reach. Not for several threads.
class GuardedHeap {
 public:
  static constexpr size_t kAddresses = size_t{8} << 30;  // reserved, not used: RLIMIT_AS counts them
  static constexpr size_t kAlignment = alignof(std::max_align_t);

  static constexpr size_t kLeast = 512;  // what is smaller is mostly a library's own structs, and would take most of the time

  // Reserves the addresses. Without them, and before, take() gives nothing.
  void open();

  // A block of zeros, or null where it is small, the addresses are used up or the system refuses. Up to 15 bytes beyond it are
  // not seen.
  void* take(size_t bytes);
  void give_back(void* block);

  bool owns(const void* block) const { return block >= begin_ && block < end_; }
  static size_t size_of(const void* block);  // what was asked for

 private:
  std::byte* begin_ = nullptr;
  std::byte* end_ = nullptr;
  std::byte* next_ = nullptr;
};

}  // namespace welkin::data
