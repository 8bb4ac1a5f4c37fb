// SPDX-License-Identifier: Apache-2.0
// A periodic stack of equal planes of float values, held in memory or in an unnamed scratch file. The simulator of boxes keeps
// its particles and meshes in it, so one code path serves boxes that fit into memory and boxes that do not.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "core/file_descriptor.h"

namespace welkin::data::simulate {

// Different planes may be read and written by different threads at a time. Throws DataError (full disk, ...).
class PlaneStore {
 public:
  // `scratch`: folder of the file; absent = in memory. The file has no name, so a killed process leaves nothing behind.
  PlaneStore(int64_t planes, int64_t values_per_plane, const std::optional<std::filesystem::path>& scratch);

  int64_t planes() const { return planes_; }
  int64_t values_per_plane() const { return values_; }

  // `length` values from `offset` of one plane; the plane's number is taken modulo the number of planes.
  void read(int64_t plane, int64_t offset, int64_t length, float* out) const;
  void write(int64_t plane, int64_t offset, int64_t length, const float* in);

 private:
  int64_t position(int64_t plane, int64_t offset, int64_t length) const;

  int64_t planes_;
  int64_t values_;
  std::vector<float> memory_;
  std::filesystem::path folder_;
  FileDescriptor file_;
};

}  // namespace welkin::data::simulate
