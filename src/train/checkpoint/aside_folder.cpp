// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/aside_folder.h"

#include <unistd.h>

#include <system_error>

#include "core/file.h"
#include "core/text.h"

namespace welkin::train {

namespace fs = std::filesystem;

fs::path aside_path(const fs::path& target, int64_t writer) {
  return target.parent_path() / cat(".", target.filename().string(), ".partial.", writer);
}

AsideFolder::AsideFolder(const fs::path& target) : path_(aside_path(target, getpid())) {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  make_folders(path_);
}

AsideFolder::~AsideFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

CheckpointError cannot_be_saved(const fs::path& target, int64_t step, const std::string& reason) {
  return {"checkpoint", cat("cannot be saved: path=", target.string(), ", step=", step, ", reason=", reason),
          "Free space or choose another expdir, then continue with --resume; earlier checkpoints are untouched"};
}

}  // namespace welkin::train
