// SPDX-License-Identifier: Apache-2.0
// The folder in which a checkpoint grows, beside the one that it becomes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/error.h"

namespace welkin::train {

// `writer` is the process that makes it.
std::filesystem::path aside_path(const std::filesystem::path& target, int64_t writer);

// Made empty by this process; removed unless it was moved away. DataError with the system's reason.
class AsideFolder {
 public:
  explicit AsideFolder(const std::filesystem::path& target);
  ~AsideFolder();
  AsideFolder(const AsideFolder&) = delete;
  AsideFolder& operator=(const AsideFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// What a write that failed becomes.
CheckpointError cannot_be_saved(const std::filesystem::path& target, int64_t step, const std::string& reason);

}  // namespace welkin::train
