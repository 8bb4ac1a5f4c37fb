// SPDX-License-Identifier: Apache-2.0
// `--memory_snapshot FILE`: the tensors of a run over time, on a CPU by our own record, on a GPU by torch's.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <optional>

#include "train/device/memory_trace.h"

namespace welkin::train {

class MemorySnapshot {
 public:
  // Records from now on. ConfigError if the folder is not there, or the device's record is not built in. `limit_bytes` is
  // memory_limit_gib in bytes, 0 without a limit.
  MemorySnapshot(std::filesystem::path path, c10::Device device, int64_t limit_bytes);
  // Writes the file if write() was not called, so that a run that ends for want of memory has one too. A failure is then a line
  // on standard error.
  ~MemorySnapshot();
  MemorySnapshot(const MemorySnapshot&) = delete;
  MemorySnapshot& operator=(const MemorySnapshot&) = delete;

  // Writes the events recorded so far. Called once. Throws DataError.
  void write();

 private:
  std::filesystem::path path_;
  std::optional<MemoryTrace> trace_;  // of a CPU
  bool is_written_ = false;
};

}  // namespace welkin::train
