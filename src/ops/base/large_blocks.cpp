// SPDX-License-Identifier: Apache-2.0
#include "ops/base/large_blocks.h"

#include <c10/core/CPUAllocator.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <new>
#include <string_view>

#include "core/error.h"

namespace welkin::ops {
namespace {

constexpr size_t kLargeBlock = size_t{2} << 20;  // from this size on torch, too, requests huge pages
constexpr size_t kLine = 64;

struct LargeBlocks {
  PageHeap* heap = nullptr;        // never destroyed: blocks may be freed after everything else has ended
  c10::Allocator* base = nullptr;  // torch's own
};

LargeBlocks& large_blocks() {
  static LargeBlocks blocks;
  return blocks;
}

void release_large_block(void* block) {
  const LargeBlocks& blocks = large_blocks();
  if (!blocks.heap->holds(block)) {
    blocks.base->raw_deleter()(block);
    return;
  }
  c10::profiledCPUMemoryReporter().Delete(block);
  blocks.heap->give_back(block);
}

// A block's context is its data pointer, which oneDNN's raw calls need.
class LargeBlockAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const LargeBlocks& blocks = large_blocks();
    void* large = bytes >= kLargeBlock ? blocks.heap->take(bytes) : nullptr;
    if (large != nullptr) {
      c10::profiledCPUMemoryReporter().New(large, bytes);
      return {large, large, &release_large_block, c10::Device(c10::DeviceType::CPU)};
    }
    c10::DataPtr block = blocks.base->allocate(bytes);
    const bool taken_over = block.compare_exchange_deleter(blocks.base->raw_deleter(), &release_large_block);
    WELKIN_CHECK(taken_over || block.get() == nullptr, "torch's allocator has another deleter than it says");
    return block;
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release_large_block; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};

bool is_switched_on() {
#ifdef __SANITIZE_ADDRESS__
  return false;  // AddressSanitizer would not see our blocks
#else
  const char* huge_pages = std::getenv("THP_MEM_ALLOC_ENABLE");
  rlimit addresses{};
  return huge_pages != nullptr && std::string_view(huge_pages) == "1" && getrlimit(RLIMIT_AS, &addresses) == 0 &&
         addresses.rlim_cur == RLIM_INFINITY;
#endif
}

}  // namespace

bool use_page_heap() {
  LargeBlocks& blocks = large_blocks();
  if (blocks.heap != nullptr || !is_switched_on()) return blocks.heap != nullptr;
  // Addresses for twice the machine's memory: gaps use addresses, but no memory.
  const size_t memory = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  blocks.heap = PageHeap::reserve(2 * memory).release();
  if (blocks.heap == nullptr) return false;
  blocks.base = c10::GetCPUAllocator();
  static LargeBlockAllocator allocator;
  c10::SetCPUAllocator(&allocator, /*priority=*/50);
  return true;
}

void* allocate_cpu_block(size_t bytes) {
  PageHeap* heap = large_blocks().heap;
  void* large = heap != nullptr && bytes >= kLargeBlock ? heap->take(bytes) : nullptr;
  return large != nullptr ? large : ::operator new (bytes, std::align_val_t{kLine});
}

void free_cpu_block(void* block) noexcept {
  PageHeap* heap = large_blocks().heap;
  if (heap != nullptr && heap->holds(block)) {
    heap->give_back(block);
  } else {
    ::operator delete (block, std::align_val_t{kLine});
  }
}

size_t size_of_cpu_block(void* block) {
  const PageHeap* heap = large_blocks().heap;
  return heap != nullptr && heap->holds(block) ? heap->size_of(block) : malloc_usable_size(block);
}

void trim_large_blocks() {
  if (PageHeap* heap = large_blocks().heap) heap->trim();
}

PageHeap::Use large_block_use() {
  const PageHeap* heap = large_blocks().heap;
  return heap != nullptr ? heap->use() : PageHeap::Use{};
}

}  // namespace welkin::ops
