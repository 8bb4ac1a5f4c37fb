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

// Moves a folder that has grown to where it belongs. What stands there gives way only then, and is removed only after it: whoever
// is ended in between leaves it beside as .<name>.replaced. DataError with the system's reason.
void publish_over(const std::filesystem::path& aside, const std::filesystem::path& target);
// Gives what publish_over() left in `folder` its name back where nothing has taken its place.
void put_back_replaced(const std::filesystem::path& folder);
// Renamed first, so that a half-removed folder is never taken for a whole one.
void remove_folder(const std::filesystem::path& path);
// Whether it is a folder or file that this program makes beside checkpoints, which a killed one leaves.
bool is_left_over(const std::filesystem::path& path);

// What a write that failed becomes.
CheckpointError cannot_be_saved(const std::filesystem::path& target, int64_t step, const std::string& reason);

}  // namespace welkin::train
