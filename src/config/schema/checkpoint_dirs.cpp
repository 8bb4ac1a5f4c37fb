// SPDX-License-Identifier: Apache-2.0
#include "config/schema/checkpoint_dirs.h"

#include <algorithm>

#include "core/duration.h"
#include "core/text.h"

namespace welkin::config {
namespace {

// Takes ":<number>" off the end; nullopt where there is none.
std::optional<int64_t> take_number(std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return {};
  const auto number = parse_count(std::string_view(text).substr(colon + 1));
  if (number) text.resize(colon);
  return number;
}

// A path may have colons. But one more number at its end, perhaps with a sign or a point, is a mistake.
bool ends_in_number(const std::string& path) {
  const std::string last = path.substr(path.rfind(':') + 1);
  return path.find(':') != std::string::npos && !last.empty() && last.find_first_not_of("+-.0123456789") == std::string::npos;
}

std::optional<CheckpointDir> checkpoint_dir_of(const std::string& entry) {
  const size_t colon = entry.find(':');
  if (colon == 0 || colon == std::string::npos) return {};
  CheckpointDir dir{.name = entry.substr(0, colon), .path = entry.substr(colon + 1), .interval = {}, .keep = {}};
  constexpr std::string_view kNeighbour = ":neighbour";
  dir.neighbour = dir.path.ends_with(kNeighbour);
  if (dir.neighbour) dir.path.resize(dir.path.size() - kNeighbour.size());
  dir.interval = take_number(dir.path);
  if (const auto before = take_number(dir.path)) {
    dir.keep = dir.interval;
    dir.interval = before;
  }
  const bool is_path = dir.path.starts_with('/') && dir.path.find(kNeighbour) == std::string::npos &&  // which stands at the end
                       !ends_in_number(dir.path);
  const bool is_sound = is_path && dir.interval.value_or(1) > 0 && dir.keep.value_or(1) > 0;
  return is_sound ? std::optional(dir) : std::nullopt;
}

}  // namespace

std::vector<CheckpointDir> parse_checkpoint_dirs(const std::vector<std::string>& entries, std::string& problem) {
  std::vector<CheckpointDir> dirs;
  for (const std::string& entry : entries) {
    const auto dir = checkpoint_dir_of(entry);
    if (!dir) {
      problem = cat("it is a name, an absolute path, numbers of at least 1, and perhaps :neighbour, not ", entry);
      return {};
    }
    const auto is_same = [&](const CheckpointDir& other) { return other.name == dir->name || other.path == dir->path; };
    if (std::ranges::any_of(dirs, is_same)) {
      problem = cat("two places have the same name or path: ", entry);
      return {};
    }
    dirs.push_back(*dir);
  }
  return dirs;
}

}  // namespace welkin::config
