// SPDX-License-Identifier: Apache-2.0
// Variables of a file of fields, a forecast or a climatology, brought to the channels, units and grid of a data set.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/forecast/grid_turn.h"
#include "data/sample/dataset.h"
#include "data/storage/stored_array.h"

namespace welkin::data {

struct FieldVariable {
  StoredArrayPtr array;            // its last axes: [level,] latitude, longitude
  std::optional<int64_t> level{};  // where it has several
  std::string unit{};              // empty where the file says none
};
using FieldVariables = std::map<std::string, FieldVariable>;  // levels under name_of_level()

// In any known format, or classic netCDF. That one is in no row of the table of formats: other files of it are for welkin data
// ingest, which knows the unlimited dimension.
ArrayFile open_field_file(const std::filesystem::path& path);

// The array `name` of the file, with its axes in order: itself, or each of its levels.
void add_variable(FieldVariables& variables, const ArrayFile& file, const std::string& name, const StoredArrayPtr& ordered,
                  const std::vector<double>& levels);

// The compared file in texts of errors.
struct ComparedFile {
  std::string component, subject, path;  // "evaluate", "the forecast", "f.zarr"
  std::string remedy_of_grid, remedy_of_unit;
};

// The turn from a grid of so many rows and columns onto `to`, the truth's grid. DataError for another grid.
GridTurn turn_onto(const SampleSpec& truth, const GridAxes& to, const GridAxes& from, int64_t height, int64_t width,
                   const ComparedFile& source);

// Puts each variable that is a channel of the truth's target under the channel's name of `names` too, whatever the file calls it
// (field_names.h). DataError for another unit. Gives the channels of which the truth says a unit and the file says none.
std::vector<std::string> name_as_channels(FieldVariables& variables, const SampleSpec& truth,
                                          const std::vector<std::string>& names, const ComparedFile& source);

}  // namespace welkin::data
