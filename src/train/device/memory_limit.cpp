// SPDX-License-Identifier: Apache-2.0
#include "train/device/memory_limit.h"

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "core/process/host.h"
#include "core/text.h"
#include "ops/base/large_blocks.h"

namespace welkin::train {
namespace {

// Process-wide, like torch's table of allocators: a block may be freed outside every context, until the process ends.
struct CpuMemory {
  c10::Allocator* base = nullptr;  // torch's own; null until the first limit
  std::atomic<int64_t> used = 0, most = 0;
  std::atomic<int64_t> limit = 0;
  std::atomic<bool> heard = false;  // true if there is a listener
  std::mutex mutex;                 // guards the listener, which must not go while it is called
  MemoryListener* listener = nullptr;
};

CpuMemory& cpu_memory() {
  static CpuMemory memory;
  return memory;
}

// The allocator's own size of a block: the same on allocation and on release.
int64_t size_of_block(void* block) { return static_cast<int64_t>(ops::size_of_cpu_block(block)); }

void note_most(int64_t used) {
  std::atomic<int64_t>& most = cpu_memory().most;
  int64_t before = most;
  while (used > before && !most.compare_exchange_weak(before, used)) {
  }
}

template <typename Notification>
void notify(const Notification& notification) {
  CpuMemory& memory = cpu_memory();
  if (!memory.heard) return;
  const std::lock_guard lock(memory.mutex);
  if (memory.listener != nullptr) notification(*memory.listener);
}

void release_block(void* block) {
  CpuMemory& memory = cpu_memory();
  if (block != nullptr) notify([&](MemoryListener& listener) { listener.given_back(block); });
  memory.used -= size_of_block(block);
  memory.base->raw_deleter()(block);
}

// torch's allocator with a count before and after. Blocks keep their data pointer as context, which oneDNN's raw calls need.
class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    reserve(static_cast<int64_t>(bytes));
    try {
      return counted(cpu_memory().base->allocate(bytes), static_cast<int64_t>(bytes));
    } catch (...) {
      cpu_memory().used -= static_cast<int64_t>(bytes);
      throw;
    }
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release_block; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  static void reserve(int64_t bytes) {
    CpuMemory& memory = cpu_memory();
    const int64_t before = memory.used.fetch_add(bytes);
    const int64_t limit = memory.limit;
    if (limit == 0 || before + bytes <= limit) return note_most(before + bytes);
    memory.used -= bytes;
    notify([&](MemoryListener& listener) { listener.refused(bytes); });
    throw MemoryError({.requested = bytes, .used = before, .limit = limit}, {},
                      "Raise --memory_limit_gib, or take smaller batches");
  }

  static c10::DataPtr counted(c10::DataPtr block, int64_t reserved) {
    const int64_t more = size_of_block(block.get()) - reserved;
    note_most(cpu_memory().used.fetch_add(more) + more);
    const bool taken_over = block.compare_exchange_deleter(cpu_memory().base->raw_deleter(), &release_block);
    WELKIN_CHECK(taken_over || block.get() == nullptr, "torch's allocator has another deleter than it says");
    if (block.get() != nullptr) notify([&](MemoryListener& listener) { listener.taken(block.get(), reserved); });
    return block;
  }
};

void begin_counting() {
  CpuMemory& memory = cpu_memory();
  if (memory.base != nullptr) return;
  memory.base = c10::GetCPUAllocator();
  static CountingAllocator allocator;
  c10::SetCPUAllocator(&allocator, /*priority=*/100);
}

std::string described(const MemoryUse& use, const std::vector<MemoryItem>& items) {
  const auto text = [](int64_t bytes) { return format_bytes(static_cast<uint64_t>(std::max<int64_t>(0, bytes))); };
  std::string what = cat(
      use.of_process ? "the system gives this process no more memory" : "tensors would take more memory than the limit allows",
      ": requested=", use.requested > 0 ? text(use.requested) : "unknown", ", free=", text(use.limit - use.used),
      ", limit=", text(use.limit));
  for (const MemoryItem& item : items) what += cat(", ", item.name, "=", text(item.bytes));
  return what;
}

}  // namespace

MemoryError::MemoryError(const MemoryUse& use, const std::vector<MemoryItem>& items, std::string_view remedy)
    : Error(ExitCode::Other, "memory", described(use, items), remedy), use_(use), items_(items) {}

int64_t cpu_memory_limit() { return cpu_memory().limit; }

void limit_cpu_memory(int64_t limit_bytes) {
  cpu_memory().limit = limit_bytes;
  if (limit_bytes != 0) begin_counting();
}

void listen_to_cpu_memory(MemoryListener* listener) {
  CpuMemory& memory = cpu_memory();
  if (listener != nullptr) begin_counting();
  const std::lock_guard lock(memory.mutex);
  memory.listener = listener;
  memory.heard = listener != nullptr;
}

void count_cpu_memory() { begin_counting(); }

int64_t max_cpu_memory_allocated() { return cpu_memory().most; }

void reset_max_cpu_memory() { cpu_memory().most = cpu_memory().used.load(); }

int64_t cpu_memory_allocated() { return cpu_memory().used; }

}  // namespace welkin::train
