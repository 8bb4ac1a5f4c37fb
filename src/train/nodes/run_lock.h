// SPDX-License-Identifier: Apache-2.0
// One run at a time in a run folder: two would move each other's checkpoints aside and write one log.
#pragma once

#include <filesystem>

#include "core/file_descriptor.h"

namespace welkin::train {

// Held while it lives, in <folder>/lock; the kernel gives it back however the process ends. ConfigError, naming who holds it,
// where another process does. A file system without locks (a mount without them) holds nobody off.
class RunLock {
 public:
  explicit RunLock(const std::filesystem::path& folder);

 private:
  FileDescriptor file_;
};

}  // namespace welkin::train
