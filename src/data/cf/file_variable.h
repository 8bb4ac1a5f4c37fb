// SPDX-License-Identifier: Apache-2.0
// One variable of a file with an array for each variable: which of its axes are time, level, latitude and longitude, by the CF
// conventions. Torch-free.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/cf/file_times.h"
#include "data/storage/stored_array.h"

namespace welkin::data {

struct FileVariable {
  StoredArrayPtr array;  // (time, level, latitude, longitude) without those that it has not
  bool has_time = false, has_level = false;
  bool south_first = false;                 // rows are stored so
  bool on_pressure = false;                 // levels are pressures
  std::vector<double> levels;               // hPa on pressure levels; empty where it has none
  std::vector<double> latitude, longitude;  // degrees, north first and eastward
  std::shared_ptr<const FileTimes> times;   // null where it has none
  std::string units;
};

// Reads what a file says of its variables. Coordinates are read once for all of them.
class VariableReader {
 public:
  // Both outlive it.
  VariableReader(const ArrayFile& file, const TimeKeys& keys) : file_(file), keys_(keys) {}

  // DataError for an array that does not lie on latitude and longitude, has a time that cannot be read, or further axes.
  FileVariable read(const std::string& name);

 private:
  std::shared_ptr<const FileTimes> times_of(const std::string& axis);

  const ArrayFile& file_;
  const TimeKeys& keys_;
  std::map<std::string, std::shared_ptr<const FileTimes>> times_;
};

}  // namespace welkin::data
