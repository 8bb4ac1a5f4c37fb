// SPDX-License-Identifier: Apache-2.0
// Recognises the training files that a run began with: by name, size and pieces of their content, so that a copy elsewhere
// counts as the same file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace welkin::data {

// A file that samples come from, by its content: equal for a copy elsewhere, different once it has grown or been replaced.
struct FileFingerprint {
  std::string name;  // without its folder
  uint64_t bytes = 0;
  uint64_t hash = 0;  // of size, head, tail and evenly spread pieces
  bool operator==(const FileFingerprint&) const = default;
};

// Reads at most 5 pieces of 4 KiB. DataError when the file cannot be read.
FileFingerprint fingerprint_of(const std::filesystem::path& path);

// The changes as text for an error: names of files that are missing, new, of another size or content. Empty: none.
std::string fingerprint_changes(const std::vector<FileFingerprint>& before, const std::vector<FileFingerprint>& now);

}  // namespace welkin::data
