// SPDX-License-Identifier: Apache-2.0
// One three-dimensional field by name, from plain HDF5 (any float data set), from a netCDF or GRIB variable on levels, or of the
// particles of GenericIO files: their density, or the mean of a variable.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/check/check_child.h"
#include "data/ingest/source/component.h"
#include "data/ingest/source/inventory.h"

namespace welkin::data::ingest {

struct Volume {
  std::array<int64_t, 3> shape{0, 0, 0};
  std::vector<float> values;  // row-major
  std::string units;
  std::vector<std::string> notes;  // facts that the reader of the values must know
};

class VolumeReader {
 public:
  // `component` is the path of libwelkin_ingest.so (`helper`: Component's), opened only when a field is not found in plain HDF5.
  // `cells`: edge of the mesh for particles.
  VolumeReader(std::vector<InputFile> files, std::filesystem::path component, CheckHelper helper, int64_t cells);

  // `shape` empty: as stored, without leading extents of 1. Throws DataError: no such field (with the names there are), not three
  // dimensions, values that are not finite.
  Volume read(const std::string& name, const std::vector<int64_t>& shape);

 private:
  struct Place {
    size_t file;
    std::string dataset;
  };
  void index_hdf5(size_t file);
  static std::optional<Place> find(const std::vector<Place>& places, const std::string& name);
  Volume read_dataset(const Place& place, const std::vector<int64_t>& shape) const;
  Volume read_levels(const std::string& name, const std::vector<int64_t>& shape);
  void open_component(const std::string& name);
  [[noreturn]] void fail_unknown(const std::string& name) const;

  std::vector<InputFile> files_;
  std::filesystem::path component_path_;
  CheckHelper helper_;
  int64_t cells_;
  std::vector<Place> places_, dimensioned_;  // plain; with dimensions that may be levels, latitudes and longitudes
  std::vector<std::filesystem::path> particles_;
  bool has_other_fields_ = false;  // not in plain HDF5: GRIB, netCDF
  std::optional<Component> component_;
  std::optional<Inventory> inventory_;
};

}  // namespace welkin::data::ingest
