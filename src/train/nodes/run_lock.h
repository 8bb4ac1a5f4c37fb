// SPDX-License-Identifier: Apache-2.0
// One run at a time in a run folder: two would move each other's checkpoints aside and write one log.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/file_descriptor.h"

namespace welkin::train {

// A lock on <folder>/lock for the object's lifetime; the kernel releases it however the process ends. ConfigError, naming the
// holder, if another process holds it. On a file system without locks (a mount without them) it has no effect.
class RunLock {
 public:
  explicit RunLock(const std::filesystem::path& folder);
  // The lock of a place of checkpoints, whose folder may be moved: the lock is beside it. Nothing if another process holds it;
  // `by` then names the holder. DataError if its folder cannot be written to.
  static std::optional<RunLock> of_place(const std::filesystem::path& folder, std::string& by);

 private:
  RunLock() = default;
  // Returns an empty text once it is held, else the holder.
  std::string take(const std::filesystem::path& path);

  FileDescriptor file_;
};

}  // namespace welkin::train
