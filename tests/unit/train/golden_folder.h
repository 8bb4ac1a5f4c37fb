// SPDX-License-Identifier: Apache-2.0
// The shared reference numbers: $WELKIN_GOLDENS, else goldens/ of $WELKIN_SHARED, else of the folder shared/ beside the sources
// ($WELKIN_SOURCE_DIR).
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace welkin::train {

inline std::filesystem::path golden_folder(const std::string& name) {
  if (const char* goldens = std::getenv("WELKIN_GOLDENS")) return std::filesystem::path(goldens) / name;
  if (const char* shared = std::getenv("WELKIN_SHARED")) return std::filesystem::path(shared) / "goldens" / name;
  const char* source = std::getenv("WELKIN_SOURCE_DIR");
  const auto sources = source != nullptr ? std::filesystem::path(source) : std::filesystem::current_path() / "../..";
  return sources / "../shared/goldens" / name;
}

}  // namespace welkin::train

// Skips the test, with the reason, where the reference numbers are absent.
#define WELKIN_NEED_GOLDEN(folder) \
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no reference numbers: set WELKIN_GOLDENS to their folder"
