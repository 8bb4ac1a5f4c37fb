// SPDX-License-Identifier: Apache-2.0
// The folder in which a checkpoint is written, beside its final place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/error.h"

namespace welkin::train {

// `writer` is the process that makes it.
std::filesystem::path aside_path(const std::filesystem::path& target, int64_t writer);

// A folder that this process makes empty. It is removed unless it was moved away. DataError with the system's reason.
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

// Moves a finished folder to its place. A folder that stands there is moved away only then, and removed only after that. A
// process that is ended in between leaves it beside as .<name>.replaced. DataError with the system's reason.
void publish_over(const std::filesystem::path& aside, const std::filesystem::path& target);
// Gives folders that publish_over() left in `folder` their names back, if nothing has taken their places.
void put_back_replaced(const std::filesystem::path& folder);
// Renames the folder first, so that a half-removed one is never taken for a whole one.
void remove_folder(const std::filesystem::path& path);
// True for a folder or file that this program makes beside checkpoints, which a killed process leaves.
bool is_left_over(const std::filesystem::path& path);

// The error of a write that failed.
CheckpointError cannot_be_saved(const std::filesystem::path& target, int64_t step, const std::string& reason);

}  // namespace welkin::train
