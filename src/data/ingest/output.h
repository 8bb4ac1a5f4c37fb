// SPDX-License-Identifier: Apache-2.0
// A training file: `fields` with its coordinates and where it came from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/formats/hdf5/hdf5_file.h"
#include "data/sample/calendar.h"

namespace welkin::data::ingest {

// Channels that are the same at all times, written once.
struct StaticPlanes {
  std::vector<std::string> channels, units;  // size S
  std::vector<float> values;                 // (S, H, W)
};

struct FieldHeader {
  std::vector<std::string> channels, units;  // size C
  std::vector<std::string> roles;            // the same, or empty: not given
  std::vector<std::string> mask_of;          // the channels of which a channel is the mask, or empty: there is no such channel
  StaticPlanes statics;
  bool has_holes = false;                   // NaN is a point without a value, which is to have no weight
  std::vector<double> latitude, longitude;  // degrees, sizes H and W
  Calendar calendar = Calendar::ProlepticGregorian;
  std::string step;        // "1 h"
  std::string provenance;  // JSON
  std::string licence;
};

// One file: `fields` float32 (time, channel, latitude, longitude), contiguous so that it can be mapped, written in order of time;
// `static` float32 (channel, latitude, longitude) where there is something static.
class FieldOutput {
 public:
  // Creates the file. `num_times` is final.
  FieldOutput(const std::filesystem::path& path, const FieldHeader& header, int32_t member, int64_t num_times);

  // One time; values (channel, latitude, longitude).
  void append(int64_t seconds, std::span<const float> values);
  // Writes the times. Throws DataError when what was written did not reach the file.
  void close();

 private:
  void write_static(const StaticPlanes& statics);

  Hdf5File file_;
  int64_t num_channels_, height_, width_;
  std::vector<int64_t> times_;
};

}  // namespace welkin::data::ingest
