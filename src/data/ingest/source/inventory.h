// SPDX-License-Identifier: Apache-2.0
// Everything that the input files hold, as one list of horizontal fields, whatever file and format they come from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/ingest/source/component.h"
#include "data/ingest/source/format.h"
#include "data/sample/calendar.h"

namespace welkin::data::ingest {

struct Grid {
  std::vector<double> latitude;   // degrees, north first
  std::vector<double> longitude;  // degrees, eastward without a jump
  int64_t num_points() const { return static_cast<int64_t>(latitude.size() * longitude.size()); }
};

// The order in which the fields of one grid lie in one file.
struct Layout {
  int32_t grid = 0;  // index into Inventory::grids
  bool south_first = false, east_first = false;
  int64_t first_column = 0;  // eastward in the file, where the grid begins: -180..180 and 0..360 are one grid
};

struct Variable {
  std::string name, other_name, long_name, units, level_type;
  int32_t level_kind = 0;  // welkin_ingest_level
  int32_t grid = 0;
  bool has_time = true;
  Calendar calendar = Calendar::ProlepticGregorian;
};

// One horizontal field: 40 bytes.
struct Field {
  int32_t file = 0, variable = 0, layout = 0, member = 0;
  double level = 0;
  int64_t time = 0;  // seconds since 1970-01-01 of the variable's calendar
  int64_t address = 0;
};

struct InputFile {
  std::filesystem::path path;
  Format format = Format::Unknown;
  uint64_t bytes = 0;
  uint64_t xxh3 = 0;  // of the whole file
};

// A variable of which no field can be taken.
struct LeftOut {
  std::string variable, file, reason;
};

struct Inventory {
  std::vector<InputFile> files;
  std::vector<Grid> grids;
  std::vector<Layout> layouts;
  std::vector<Variable> variables;
  std::vector<Field> fields;
  std::vector<LeftOut> left_out;
  std::vector<std::string> notes;  // those left out that look like fields, and why; grids that were turned
};

enum class Subfolders { Skip, Read };

struct Inputs {
  std::vector<InputFile> files;
  std::vector<std::string> warnings;  // folders that were not looked into, files whose content does not match their names
};

// The files named, and those in the folders named that are GRIB, netCDF or HDF5 by content, sorted by name. Links to folders
// are not followed. Throws DataError for a path that is absent, or named but of no known format, and when nothing remains.
Inputs find_inputs(const std::vector<std::filesystem::path>& paths, Subfolders subfolders = Subfolders::Skip);

// Opens every file and lists its fields. Throws DataError.
Inventory take_inventory(const Component& component, std::vector<InputFile> files);

// One field north first and eastward; `values` has the grid's size. `source` is the field's file.
void read_field(Source& source, const Inventory& inventory, const Field& field, std::span<float> values);

}  // namespace welkin::data::ingest
