// SPDX-License-Identifier: Apache-2.0
// The folder that `welkin init` makes.
#pragma once

#include <filesystem>
#include <system_error>

namespace welkin::apps {

// An empty folder counts as absent. If init fails, it is there again.
class EmptyTarget {
 public:
  explicit EmptyTarget(const std::filesystem::path& path) {
    std::error_code ignored;
    if (std::filesystem::is_directory(std::filesystem::symlink_status(path, ignored)) &&
        std::filesystem::is_empty(path, ignored) && std::filesystem::remove(path, ignored))
      path_ = path;
  }
  ~EmptyTarget() {
    std::error_code ignored;
    if (!path_.empty() && !std::filesystem::exists(path_, ignored)) std::filesystem::create_directory(path_, ignored);
  }
  EmptyTarget(const EmptyTarget&) = delete;
  EmptyTarget& operator=(const EmptyTarget&) = delete;

 private:
  std::filesystem::path path_;
};

}  // namespace welkin::apps
