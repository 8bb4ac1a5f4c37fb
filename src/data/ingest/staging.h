// SPDX-License-Identifier: Apache-2.0
// A folder that is filled under a temporary name beside its place and moved there when it is complete.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/file_descriptor.h"

namespace welkin::data::ingest {

class StagingFolder {
 public:
  // Throws DataError when `target` exists or its parent cannot be written. Removes what killed processes of this host left behind
  // for the same target.
  explicit StagingFolder(std::filesystem::path target);
  ~StagingFolder();  // removes what was not published
  StagingFolder(const StagingFolder&) = delete;
  StagingFolder& operator=(const StagingFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void publish();

  // Leftovers of other runs that were removed, and those that may still be in use: a line each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void clear_leftovers();

  std::filesystem::path target_, path_;
  FileDescriptor lock_;  // held while this process lives: a process that can take it knows that the owner is gone
  std::vector<std::string> notes_;
};

}  // namespace welkin::data::ingest
