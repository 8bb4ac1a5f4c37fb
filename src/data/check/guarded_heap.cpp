// SPDX-License-Identifier: Apache-2.0
#include "data/check/guarded_heap.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>

namespace welkin::data {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHeader = GuardedHeap::kAlignment;  // before a block: its requested size

size_t rounded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Header and block, which ends with the last of these pages.
size_t pages_of(size_t bytes) { return rounded(kHeader + rounded(bytes, GuardedHeap::kAlignment), kPage); }

}  // namespace

void GuardedHeap::open() {
  void* const reserved = mmap(nullptr, kAddresses, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return;
  begin_ = next_ = static_cast<std::byte*>(reserved);
  end_ = begin_ + kAddresses;
}

void* GuardedHeap::take(size_t bytes) {
  const auto left = static_cast<size_t>(end_ - next_);
  if (bytes < kLeast || bytes >= left || pages_of(bytes) + kPage > left) return nullptr;
  const size_t pages = pages_of(bytes);
  if (mprotect(next_, pages, PROT_READ | PROT_WRITE) != 0) return nullptr;
  std::byte* const block = next_ + pages - rounded(bytes, kAlignment);
  std::memcpy(block - kHeader, &bytes, sizeof bytes);
  next_ += pages + kPage;
  return block;
}

void GuardedHeap::give_back(void* block) {
  const size_t pages = pages_of(size_of(block));
  const auto address = reinterpret_cast<uintptr_t>(block) - kHeader;
  std::byte* const first = static_cast<std::byte*>(block) - kHeader - address % kPage;
  // Makes the pages inaccessible and frees their memory. Where the system refuses, they stay until the process ends.
  static_cast<void>(mmap(first, pages, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0));
}

size_t GuardedHeap::size_of(const void* block) {
  size_t bytes = 0;
  std::memcpy(&bytes, static_cast<const std::byte*>(block) - kHeader, sizeof bytes);
  return bytes;
}

}  // namespace welkin::data
