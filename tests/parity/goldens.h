// SPDX-License-Identifier: Apache-2.0
// Where the shared reference cases are: $WELKIN_GOLDENS, or goldens/ of $WELKIN_SHARED, or of the folder shared/ beside the
// sources.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace welkin::parity {

inline std::filesystem::path goldens_folder() {
  if (const char* goldens = std::getenv("WELKIN_GOLDENS")) return goldens;
  if (const char* shared = std::getenv("WELKIN_SHARED")) return std::filesystem::path(shared) / "goldens";
  const char* source = std::getenv("WELKIN_SOURCE_DIR");
  const auto sources = source ? std::filesystem::path(source) : std::filesystem::path(__FILE__).parent_path() / ".." / "..";
  return sources / ".." / "shared" / "goldens";
}

// Every folder with a meta.json, sorted by name; none when the reference cases are absent.
inline std::vector<std::filesystem::path> golden_cases() {
  std::vector<std::filesystem::path> cases;
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(goldens_folder(), absent)) {
    if (std::filesystem::exists(entry.path() / "meta.json")) cases.push_back(entry.path());
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

}  // namespace welkin::parity
