// SPDX-License-Identifier: Apache-2.0
#include "train/device/memory_snapshot.h"

#include <exception>
#include <iostream>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/output_check.h"
#include "core/text.h"
#include "ops/device/device_ops.h"

namespace welkin::train {
namespace {

constexpr size_t kSnapshotEvents = 100'000;

}  // namespace

MemorySnapshot::MemorySnapshot(std::filesystem::path path, c10::Device device, int64_t limit_bytes) : path_(std::move(path)) {
  check_output("memory", "memory_snapshot", path_);
  if (device.is_cpu()) {
    trace_.emplace(MemoryTraceOptions{.max_events = kSnapshotEvents, .limit_bytes = limit_bytes});
    return;
  }
  const ops::DeviceMemoryHistory& history = ops::device_ops().memory_history;
  if (history.begin == nullptr) {
    throw ConfigError("memory", cat("the record of a GPU's memory is not built in: device=", device.str()),
                      "Build libwelkin_cuda.so (./quickstart.sh --cuda), or take --device cpu");
  }
  history.begin(kSnapshotEvents);
}

MemorySnapshot::~MemorySnapshot() {
  if (is_written_) return;
  try {
    write();
  } catch (const std::exception& error) {
    std::cerr << "welkin: " << error.what() << std::endl;
  }
}

void MemorySnapshot::write() {
  is_written_ = true;
  if (trace_) return trace_->write(path_);
  write_file_atomically(path_, ops::device_ops().memory_history.snapshot());
}

}  // namespace welkin::train
