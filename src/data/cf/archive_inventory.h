// SPDX-License-Identifier: Apache-2.0
// The inventory of an archive: the files, levels and times of each wanted variable. Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/cf/archive.h"
#include "data/cf/file_variable.h"
#include "data/sample/calendar.h"

namespace welkin::data {

// A variable in one of the files.
struct VariablePiece {
  std::filesystem::path path;
  FileVariable variable;
};

// One time of a variable: step `step` of its piece `piece`.
struct TimePlace {
  int64_t seconds = 0;
  size_t piece = 0;
  int64_t step = 0;
};

// A variable that is wanted, in all files.
struct ArchiveVariable {
  std::string name;
  std::vector<std::string> others{};  // names of it in other archives
  std::vector<VariablePiece> pieces{};
  std::vector<TimePlace> places{};  // ascending, within the span; empty where it has no times
  const FileVariable& first() const { return pieces.front().variable; }
};

struct ArchiveChannel {
  size_t variable = 0;
  int64_t level = 0;
  std::string name;
};

struct ArchiveInventory {
  std::vector<ArchiveVariable> variables;
  std::vector<ArchiveChannel> channels;
  size_t timed = 0;  // the first variable that has times: the others that have any have the same
  Calendar calendar = Calendar::ProlepticGregorian;
  std::vector<std::filesystem::path> files;

  const FileVariable& grid() const { return variables.front().first(); }
  const std::vector<TimePlace>& times() const { return variables[timed].places; }
};

// Throws the errors of open_archive().
ArchiveInventory take_archive_inventory(const ArchiveOptions& options, const std::shared_ptr<ChunkCache>& cache);

}  // namespace welkin::data
