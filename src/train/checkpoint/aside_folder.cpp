// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/aside_folder.h"

#include <unistd.h>

#include <string_view>
#include <system_error>
#include <vector>

#include "core/file.h"
#include "core/text.h"

namespace welkin::train {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kReplaced = ".replaced", kRemoved = ".removed";

fs::path beside(const fs::path& path, std::string_view ending) {
  const std::string name = path.filename().string();
  return path.parent_path() / cat(name.starts_with(".") ? "" : ".", name, ending);
}

bool is_beside(const fs::path& path, std::string_view ending) {
  const std::string name = path.filename().string();
  return name.starts_with(".step_") && name.ends_with(ending);
}

}  // namespace

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

void publish_over(const fs::path& aside, const fs::path& target) {
  const fs::path former = beside(target, kReplaced);
  if (is_there(former)) remove_folder(former);
  publish_folder_over(aside, target, former);
  if (is_there(former)) remove_folder(former);
}

void put_back_replaced(const fs::path& folder) {
  std::error_code ignored;
  for (const fs::path& path : entries_of(folder)) {
    if (!is_beside(path, kReplaced)) continue;
    const std::string name = path.filename().string();
    const fs::path target = folder / name.substr(1, name.size() - 1 - kReplaced.size());
    if (!is_there(target)) fs::rename(path, target, ignored);
  }
}

void remove_folder(const fs::path& path) {
  const fs::path doomed = beside(path, kRemoved);
  std::error_code error;
  fs::rename(path, doomed, error);
  fs::remove_all(error ? path : doomed, error);
}

bool is_left_over(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name.starts_with(".best.json.") && name.ends_with(".tmp")) return true;
  return (name.starts_with(".step_") && name.find(".partial.") != std::string::npos) || is_beside(path, kRemoved) ||
         is_beside(path, kReplaced);
}

CheckpointError cannot_be_saved(const fs::path& target, int64_t step, const std::string& reason) {
  return {"checkpoint", cat("cannot be saved: path=", target.string(), ", step=", step, ", reason=", reason),
          "Free space or choose another expdir, then continue with --resume; earlier checkpoints are untouched"};
}

}  // namespace welkin::train
