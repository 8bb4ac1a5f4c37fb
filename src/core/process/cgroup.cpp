// SPDX-License-Identifier: Apache-2.0
#include "core/process/cgroup.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/text.h"

namespace welkin {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestText = size_t{1} << 16;  // of /proc/self/cgroup: a line per controller
constexpr size_t kDeepest = 64;                   // groups below each other that are looked at

// Reads the first bytes alone: these files are made by the kernel, or mounted over.
std::string beginning_of(const fs::path& path, size_t most) {
  std::ifstream file(path, std::ios::binary);
  std::string text(most, '\0');
  file.read(text.data(), static_cast<std::streamsize>(most));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text;
}

// The first numbers of a small file; fewer where something else stands: "max", -1, nothing.
std::vector<uint64_t> numbers_of(const fs::path& path) {
  constexpr size_t kMost = 128;
  const std::string text = beginning_of(path, kMost);
  std::vector<uint64_t> numbers;
  for (const char *at = text.data(), *end = at + text.size(); at < end;) {
    uint64_t number = 0;
    const auto [behind, problem] = std::from_chars(at, end, number);
    if (problem != std::errc()) break;
    numbers.push_back(number);
    at = behind;
    while (at < end && (*at == ' ' || *at == '\n')) ++at;
  }
  return numbers;
}

std::optional<uint64_t> number_of(const fs::path& path) {
  const std::vector<uint64_t> numbers = numbers_of(path);
  return numbers.empty() ? std::nullopt : std::optional(numbers.front());
}

// The path of this process's group; "/" where nothing says one. `controller`: of version 1, empty of version 2.
std::string group_of(const std::string& lines, std::string_view controller) {
  std::istringstream text(lines);
  for (std::string line; std::getline(text, line);) {
    const size_t first = line.find(':'), second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    const bool is_wanted =
        controller.empty() ? names.empty() : cat(",", names, ",").find(cat(",", controller, ",")) != std::string::npos;
    if (is_wanted) return line.substr(second + 1);
  }
  return "/";
}

// The mount itself, which is this process's group in most containers, and the folders down to the group. A path with ".." leads
// out of the mounted tree.
std::vector<fs::path> groups_down(const fs::path& mount, const std::string& group) {
  std::vector<fs::path> folders = {mount};
  for (const fs::path& part : fs::path(group).relative_path()) {
    if (part == ".." || folders.size() > kDeepest) return folders;
    if (!part.empty() && part != ".") folders.push_back(folders.back() / part);
  }
  return folders;
}

void take_memory(CgroupLimits& limits, const fs::path& limit_file, const fs::path& used_file) {
  const auto limit = number_of(limit_file);
  if (!limit) return;
  const uint64_t used = number_of(used_file).value_or(0);
  limits.memory = std::min(limits.memory, *limit);
  limits.memory_left = std::min(limits.memory_left, *limit > used ? *limit - used : 0);
}

void take_cores(CgroupLimits& limits, std::optional<uint64_t> quota, std::optional<uint64_t> period) {
  if (!quota || !period || *quota == 0 || *period == 0) return;
  const double cores = static_cast<double>(*quota) / static_cast<double>(*period);
  limits.cores = limits.cores == 0 ? cores : std::min(limits.cores, cores);
}

}  // namespace

CgroupLimits cgroup_limits(const fs::path& root) {
  const fs::path mounts = root / "sys/fs/cgroup";
  const std::string lines = beginning_of(root / "proc/self/cgroup", kLongestText);
  CgroupLimits limits;
  for (const fs::path& mount : {mounts, mounts / "unified"}) {
    for (const fs::path& folder : groups_down(mount, group_of(lines, ""))) {
      take_memory(limits, folder / "memory.max", folder / "memory.current");
      const std::vector<uint64_t> share = numbers_of(folder / "cpu.max");
      if (share.size() == 2) take_cores(limits, share[0], share[1]);
    }
  }
  for (const fs::path& folder : groups_down(mounts / "memory", group_of(lines, "memory")))
    take_memory(limits, folder / "memory.limit_in_bytes", folder / "memory.usage_in_bytes");
  for (const char* name : {"cpu", "cpu,cpuacct"}) {
    for (const fs::path& folder : groups_down(mounts / name, group_of(lines, "cpu")))
      take_cores(limits, number_of(folder / "cpu.cfs_quota_us"), number_of(folder / "cpu.cfs_period_us"));
  }
  return limits;
}

}  // namespace welkin
