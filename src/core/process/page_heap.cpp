// SPDX-License-Identifier: Apache-2.0
#include "core/process/page_heap.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>

#include "core/error.h"

namespace welkin {
namespace {

constexpr size_t kUnit =
    4096;  // blocks share huge pages: rounded up to them, a transformer's activations would take a third more
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kGrowth = 32 * kHugePage;  // made writable at a time
constexpr size_t kSlack = 16 * kHugePage;   // pages that blocks of a small heap may leave unused
constexpr size_t kNowhere = ~size_t{0};

size_t rounded_up(size_t bytes, size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

}  // namespace

std::unique_ptr<PageHeap> PageHeap::reserve(size_t bytes) {
  const size_t whole = rounded_up(bytes, kHugePage);
  void* base = mmap(nullptr, whole + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  return std::unique_ptr<PageHeap>(new PageHeap(static_cast<std::byte*>(base), whole));  // the constructor is private
}

// The mapping is one huge page longer than `bytes`: the rest around whole huge pages is unmapped.
PageHeap::PageHeap(std::byte* base, size_t bytes) : base_(base), reserved_(bytes), resident_(bytes / kHugePage, false) {
  const auto address = reinterpret_cast<uintptr_t>(base);
  const size_t head = rounded_up(address, kHugePage) - address;
  base_ += head;
  if (head > 0) munmap(base, head);
  munmap(base_ + reserved_, kHugePage - head);
  madvise(base_, reserved_, MADV_HUGEPAGE);  // without it all works, on small pages
}

PageHeap::~PageHeap() { munmap(base_, reserved_); }

bool PageHeap::holds(const void* address) const {
  const auto* byte = static_cast<const std::byte*>(address);
  return byte >= base_ && byte < base_ + reserved_;
}

size_t PageHeap::size_of(const void* block) const {
  const std::lock_guard lock(mutex_);
  return blocks_.at(static_cast<size_t>(static_cast<const std::byte*>(block) - base_));
}

PageHeap::Use PageHeap::use() const {
  const std::lock_guard lock(mutex_);
  return use_;
}

void* PageHeap::take(size_t bytes) {
  if (bytes == 0 || bytes > reserved_) return nullptr;
  const size_t size = rounded_up(bytes, kUnit);
  const std::lock_guard lock(mutex_);
  const size_t offset = find(size);
  if (offset == kNowhere) return nullptr;
  blocks_.emplace(offset, size);
  use_.live += size;
  use_.most_live = std::max(use_.most_live, use_.live);
  count_resident(offset, size);
  return base_ + offset;
}

void PageHeap::give_back(void* block) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(static_cast<size_t>(static_cast<std::byte*>(block) - base_));
  WELKIN_CHECK(found != blocks_.end(), "a block that is given back was taken here");
  use_.live -= found->second;
  add_free(found->first, found->second);
  blocks_.erase(found);
}

void PageHeap::trim() {
  const std::lock_guard lock(mutex_);
  release(use_.resident / kHugePage);
  use_.most_live = use_.live;
}

// Takes a free range for a block of `bytes`. Returns its offset.
size_t PageHeap::find(size_t bytes) {
  const auto fitting = by_size_.lower_bound({bytes, 0});
  if (fitting == by_size_.end() && !grow(bytes)) return kNowhere;
  const auto [size, offset] = *by_size_.lower_bound({bytes, 0});
  remove_free(free_.find(offset));
  if (size > bytes) add_free(offset + bytes, size - bytes);
  return offset;
}

// Makes the free range at the end, which may be none yet, as long as `bytes`.
bool PageHeap::grow(size_t bytes) {
  size_t begin = top_;
  if (!free_.empty()) {
    const auto last = std::prev(free_.end());
    if (last->first + last->second == top_) begin = last->first;
  }
  const size_t end = begin + bytes;
  if (end > reserved_) return false;
  if (end > writable_) {
    const size_t more = std::min(reserved_, rounded_up(end, kGrowth));
    if (mprotect(base_ + writable_, more - writable_, PROT_READ | PROT_WRITE) != 0) return false;
    writable_ = more;
  }
  add_free(top_, end - top_);
  top_ = end;
  return true;
}

void PageHeap::add_free(size_t offset, size_t bytes) {
  auto after = free_.lower_bound(offset);
  if (after != free_.end() && after->first == offset + bytes) {
    bytes += after->second;
    const auto joined = after++;
    remove_free(joined);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      remove_free(before);
    }
  }
  free_.emplace(offset, bytes);
  by_size_.emplace(bytes, offset);
}

void PageHeap::remove_free(std::map<size_t, size_t>::iterator range) {
  by_size_.erase({range->second, range->first});
  free_.erase(range);
}

// The block will touch its pages. As many pages beyond the bound are released elsewhere first.
void PageHeap::count_resident(size_t offset, size_t bytes) {
  const size_t first = offset / kHugePage;
  const size_t last = (offset + bytes - 1) / kHugePage;
  size_t fresh = 0;
  for (size_t page = first; page <= last; ++page) fresh += resident_[page] ? 0 : 1;
  if (fresh == 0) return;
  const size_t bound = (use_.most_live + use_.most_live / 32 + kSlack) / kHugePage;
  const size_t resident = use_.resident / kHugePage + fresh;
  if (resident > bound) release(resident - bound);
  for (size_t page = first; page <= last; ++page) resident_[page] = true;
  use_.resident += fresh * kHugePage;
}

// Starts with the largest ranges: they are the least likely to be needed soon.
void PageHeap::release(size_t pages) {
  for (auto range = by_size_.rbegin(); range != by_size_.rend() && pages > 0; ++range) {
    if (range->first < kHugePage) return;
    pages -= release_range(range->second, range->first, pages);
  }
}

// Releases at most `pages` of the huge pages that lie within a free range, from its end. Returns how many.
size_t PageHeap::release_range(size_t offset, size_t bytes, size_t pages) {
  const size_t first = rounded_up(offset, kHugePage) / kHugePage;
  const size_t end = offset + bytes == top_ ? rounded_up(top_, kHugePage) : offset + bytes;  // nothing lies behind the top
  size_t released = 0;
  for (size_t page = end / kHugePage; page > first && released < pages; --page) {
    if (!resident_[page - 1]) continue;
    madvise(base_ + (page - 1) * kHugePage, kHugePage, MADV_DONTNEED);
    resident_[page - 1] = false;
    use_.resident -= kHugePage;
    ++released;
  }
  return released;
}

}  // namespace welkin
