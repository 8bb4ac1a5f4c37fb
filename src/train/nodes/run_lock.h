// SPDX-License-Identifier: Apache-2.0
// One run at a time in a run folder: two would move each other's checkpoints aside and write one log.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/file_descriptor.h"

namespace welkin::train {

// Held while it lives, in <folder>/lock; the kernel gives it back however the process ends. ConfigError, naming who holds it,
// where another process does. A file system without locks (a mount without them) holds nobody off.
class RunLock {
 public:
  explicit RunLock(const std::filesystem::path& folder);
  // Of a place of checkpoints, whose folder may be moved: the lock is beside it. Nothing where another process holds it: who, in
  // `by`. DataError where its folder cannot be written to.
  static std::optional<RunLock> of_place(const std::filesystem::path& folder, std::string& by);

 private:
  RunLock() = default;
  // Empty once it is held, else who holds it.
  std::string take(const std::filesystem::path& path);

  FileDescriptor file_;
};

}  // namespace welkin::train
