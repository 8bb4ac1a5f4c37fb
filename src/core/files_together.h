// SPDX-License-Identifier: Apache-2.0
// Several files of one moment, written as file.h writes one: complete or absent.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

namespace welkin {

// Files that become visible together: each is written under a temporary name, and while the disk works on one the next is
// written. finish() syncs and renames all; unfinished files are removed. Throws DataError as file.h does. Not thread-safe.
class FilesTogether {
 public:
  FilesTogether();
  ~FilesTogether();
  FilesTogether(const FilesTogether&) = delete;
  FilesTogether& operator=(const FilesTogether&) = delete;

  // `write` fills the temporary path that it is given.
  void write(const std::filesystem::path& path, const std::function<void(const std::filesystem::path&)>& write);
  void finish();

 private:
  struct File;
  std::vector<File> files_;
};

}  // namespace welkin
