// SPDX-License-Identifier: Apache-2.0
// Allocations of tensors on the CPU over time, as a snapshot that PyTorch's memory viewer opens (pytorch.org/memory_viz,
// `python -m torch.cuda._memory_viz`). Format: the pickle of torch.cuda.memory._snapshot(), documented in its _memory_viz.py.
#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "train/device/memory_limit.h"

namespace welkin::train {

struct MemoryTraceOptions {
  size_t max_events = 100'000;  // the newest are kept
  int64_t limit_bytes = 0;      // of limit_cpu_memory(), for the free bytes when a request is refused
};

// Records from construction on; one at a time in a process. Every block is labelled with the operators that run when it is
// allocated, forward or backward. Installs the counting allocator of limit_cpu_memory: earlier blocks are not recorded.
class MemoryTrace : public MemoryListener {
 public:
  explicit MemoryTrace(MemoryTraceOptions options = {});
  ~MemoryTrace() override;
  MemoryTrace(const MemoryTrace&) = delete;
  MemoryTrace& operator=(const MemoryTrace&) = delete;

  void taken(const void* block, int64_t bytes) noexcept override;
  void given_back(const void* block) noexcept override;
  void refused(int64_t bytes) noexcept override;

  // Writes the file atomically; events during the write are not in it. Throws DataError.
  void write(const std::filesystem::path& path) const;

 private:
  enum class Action { Taken, GivenBack, Refused };
  struct Block {
    int64_t bytes = 0;
    int32_t label = 0;
  };
  struct Event {
    Action action;
    int64_t address;  // Refused: bytes that were free
    Block block;
    int64_t time_us;
  };
  int32_t label_here();          // needs the mutex
  void add(const Event& event);  // needs the mutex

  const MemoryTraceOptions options_;
  at::CallbackHandle operators_;
  mutable std::mutex mutex_;
  std::deque<Event> events_;
  std::map<int64_t, Block> live_;  // by address
  std::vector<std::vector<std::string>> labels_;
  std::unordered_map<std::string, int32_t> label_numbers_;
};

}  // namespace welkin::train
