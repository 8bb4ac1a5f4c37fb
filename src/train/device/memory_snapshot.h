// SPDX-License-Identifier: Apache-2.0
// `--memory_snapshot FILE`: what the tensors of a run take over time, on a CPU by our own record, on a GPU by torch's.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <optional>

#include "train/device/memory_trace.h"

namespace welkin::train {

class MemorySnapshot {
 public:
  // Records from now on. ConfigError where the folder is not there, or the device's record is not built in.
  // `limit_bytes`: of memory_limit_gib, 0 without.
  MemorySnapshot(std::filesystem::path path, c10::Device device, int64_t limit_bytes);
  // Writes the file where write() was not called, so that a run that ends for want of memory has one too; a failure is then a
  // line on standard error.
  ~MemorySnapshot();
  MemorySnapshot(const MemorySnapshot&) = delete;
  MemorySnapshot& operator=(const MemorySnapshot&) = delete;

  // What was recorded so far, once. Throws DataError.
  void write();

 private:
  std::filesystem::path path_;
  std::optional<MemoryTrace> trace_;  // of a CPU
  bool is_written_ = false;
};

}  // namespace welkin::train
