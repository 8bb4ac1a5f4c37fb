// SPDX-License-Identifier: Apache-2.0
// A limit on tensor memory on the CPU, so that running out of memory is an error that can be reported, on any machine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace welkin::train {

// Sizes in bytes.
struct MemoryUse {
  int64_t requested = 0;  // 0: not known
  int64_t used = 0;       // by tensors of this process, without the request
  int64_t limit = 0;
  bool of_process = false;  // the limit holds for the whole process with its code; `used` is then its peak
};

// A user of memory, such as "weights", and its bytes.
struct MemoryItem {
  std::string name;
  int64_t bytes = 0;
};

// A tensor beyond the limit, or memory that the system does not give. Exit code 1.
class MemoryError : public Error {
 public:
  // `items` says where the memory is, as far as it is known.
  MemoryError(const MemoryUse& use, const std::vector<MemoryItem>& items, std::string_view remedy);
  const MemoryUse& use() const { return use_; }
  const std::vector<MemoryItem>& items() const { return items_; }

 private:
  MemoryUse use_;
  std::vector<MemoryItem> items_;
};

// A limit above 0 has at least a byte, since 0 is no limit.
inline int64_t bytes_of_limit(double gib) {
  return gib > 0 ? std::max<int64_t>(1, static_cast<int64_t>(gib * (int64_t{1} << 30))) : 0;
}

// From now on a tensor on the CPU beyond `limit_bytes` in total is a MemoryError; 0 lifts the limit. Process-wide by nature.
// Tensors that exist at the first call are not counted. Call it before other threads make tensors.
void limit_cpu_memory(int64_t limit_bytes);
int64_t cpu_memory_limit();  // 0: none

// Counts from now on, without setting a limit. Tensors that exist then are not counted.
void count_cpu_memory();

// Bytes of tensors on the CPU since counting began; 0 before that. Then the most of them since reset_max_cpu_memory().
int64_t cpu_memory_allocated();
int64_t max_cpu_memory_allocated();
void reset_max_cpu_memory();

// Called for every block of tensors on the CPU, on the thread that allocates or frees it. Must not make tensors.
class MemoryListener {
 public:
  virtual ~MemoryListener() = default;
  virtual void taken(const void* block, int64_t bytes) noexcept = 0;
  virtual void given_back(const void* block) noexcept = 0;
  virtual void refused(int64_t bytes) noexcept = 0;  // a request beyond the limit
};

// One listener at a time; null removes it, after which it is not called any more. Process-wide like the limit.
void listen_to_cpu_memory(MemoryListener* listener);

}  // namespace welkin::train
