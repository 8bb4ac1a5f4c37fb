// SPDX-License-Identifier: Apache-2.0
// Memory for large blocks that stays with the process: the next training step takes the blocks that one gives back, so that the
// kernel need not find and clear the same gigabyte for every step. A virtual machine gains more than that: a host that is told
// of free pages takes them away within seconds, and bringing 2 MiB back was measured at 5.5 ms instead of 0.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace welkin {

// One range of addresses on huge pages, best fit, lowest address first; neighbours that are free become one. Resident memory
// exceeds the peak of all blocks by at most 1/32: before more is touched, free pages go back to the kernel. All functions may
// be called from any thread.
class PageHeap {
 public:
  // Reserves addresses and no memory. Null where the system refuses.
  static std::unique_ptr<PageHeap> reserve(size_t bytes);
  PageHeap(const PageHeap&) = delete;
  PageHeap& operator=(const PageHeap&) = delete;
  ~PageHeap();  // frees blocks too

  // Aligned to 4096 bytes, not cleared. Null when the range has no room.
  void* take(size_t bytes);
  void give_back(void* block);

  // Gives all free pages back to the kernel and resets the record of use: for a new piece of work in the same process.
  void trim();

  // holds(): true for an address of this heap. size_of(): bytes of a block, rounded up as it was taken.
  bool holds(const void* address) const;
  size_t size_of(const void* block) const;

  struct Use {
    size_t live = 0;       // of blocks
    size_t most_live = 0;  // ever
    size_t resident = 0;   // at most: huge pages that were touched and not given back
  };
  Use use() const;

 private:
  PageHeap(std::byte* base, size_t bytes);

  size_t find(size_t bytes);
  bool grow(size_t bytes);
  void add_free(size_t offset, size_t bytes);
  void remove_free(std::map<size_t, size_t>::iterator range);
  void count_resident(size_t offset, size_t bytes);
  void release(size_t pages);
  size_t release_range(size_t offset, size_t bytes, size_t pages);

  mutable std::mutex mutex_;
  std::byte* base_;
  size_t reserved_;
  size_t top_ = 0;       // bytes of the range that were ever given out
  size_t writable_ = 0;  // bytes of the range that may be touched
  Use use_;
  std::map<size_t, size_t> free_;                // offset -> bytes
  std::set<std::pair<size_t, size_t>> by_size_;  // the same as (bytes, offset)
  std::unordered_map<size_t, size_t> blocks_;    // offset -> bytes
  std::vector<bool> resident_;                   // by huge page
};

}  // namespace welkin
