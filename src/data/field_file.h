// SPDX-License-Identifier: Apache-2.0
// One training file of gridded fields: dataset `fields` (time, channel, lat, lon), any number type, with optional `channels` and
// `units` attributes and the data sets `latitude`, `longitude`, `time`. Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/hdf5_file.h"
#include "data/watched_file.h"

namespace welkin::data {

struct FieldFacts {
  std::filesystem::path path;
  int64_t steps = 0, channels = 0, height = 0, width = 0;
  std::vector<std::string> channel_names;   // empty when the file does not say
  std::vector<std::string> units;           // the same
  std::vector<double> latitude, longitude;  // degrees; empty when the file does not say
  std::vector<int64_t> time;  // seconds since 1970-01-01 of `calendar`, size steps; empty when the file does not say
  std::string calendar = "proleptic_gregorian";
};

// Rows and columns of a field.
struct FieldWindow {
  int64_t row = 0, column = 0, height = 0, width = 0;
};

// Thread-safe after construction. Contiguous little-endian float32 is read without HDF5, by any number of threads at once.
class FieldFile {
 public:
  explicit FieldFile(const std::filesystem::path& path);  // DataError when there is no usable `fields`

  const FieldFacts& facts() const { return facts_; }

  // Channels [0, num_channels) of one time, (num_channels, window.height, window.width) row-major.
  void read(int64_t step, int64_t num_channels, const FieldWindow& window, std::span<float> out) const;

 private:
  void read_contiguous(int64_t step, int64_t num_channels, const FieldWindow& window, std::span<float> out) const;

  FieldFacts facts_;
  std::unique_ptr<Hdf5File> hdf5_;      // where HDF5 must decode
  std::unique_ptr<WatchedFile> bytes_;  // where the values lie as they are
  uint64_t offset_ = 0;
};

// Every *.h5 directly inside `folder`, sorted by name. DataError when there is none.
std::vector<std::filesystem::path> list_field_files(const std::filesystem::path& folder);

}  // namespace welkin::data
