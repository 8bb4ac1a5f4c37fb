// SPDX-License-Identifier: Apache-2.0
// A folder that is filled under a temporary name beside its place and moved there when it is complete.
#pragma once

#include <filesystem>

namespace welkin::data::ingest {

class StagingFolder {
 public:
  // Throws DataError when `target` exists or its parent cannot be written.
  explicit StagingFolder(std::filesystem::path target);
  ~StagingFolder();  // removes what was not published
  StagingFolder(const StagingFolder&) = delete;
  StagingFolder& operator=(const StagingFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void publish();

 private:
  std::filesystem::path target_, path_;
};

}  // namespace welkin::data::ingest
