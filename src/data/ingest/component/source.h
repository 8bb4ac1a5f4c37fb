// SPDX-License-Identifier: Apache-2.0
// Inside libwelkin_ingest.so: the common interface of GRIB and netCDF files. Nothing here is seen by libwelkin.so, which knows
// ../source/component_abi.h alone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "data/ingest/source/component_abi.h"

namespace welkin::ingest_component {

// A fault of the file, in words; becomes the error text of the C functions.
struct SourceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Grid {
  std::vector<double> latitude, longitude;  // degrees, in the file's order
};

struct Tables {
  std::vector<welkin_ingest_variable> variables;
  std::vector<Grid> grids;
  std::vector<welkin_ingest_plane> planes;
};

class Source {
 public:
  virtual ~Source() = default;
  // Reads all headers into `tables`.
  virtual void scan(Tables& tables) = 0;
  // Fills `values` (row-major, latitude first, file order); NaN where the file has no value.
  virtual void read_plane(int64_t address, std::span<float> values) = 0;
};

std::unique_ptr<Source> open_grib(const char* path);
std::unique_ptr<Source> open_netcdf(const char* path);

// Copies with a terminating NUL, cut to the capacity.
void copy_text(std::string_view from, std::span<char> to);
// Index of an equal grid in `grids`, appended when new. Throws when there are too many.
int32_t add_grid(std::vector<Grid>& grids, Grid grid);
// Appends. Throws when there are too many.
int32_t add_variable(Tables& tables, const welkin_ingest_variable& variable);
void add_plane(Tables& tables, const welkin_ingest_plane& plane);

}  // namespace welkin::ingest_component
