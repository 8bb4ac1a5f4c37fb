// SPDX-License-Identifier: Apache-2.0
// Defaults of `welkin init` where nothing was given: parts by time, and a patch that divides the grid. They follow from headers
// alone; no value is read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/ingest/options.h"
#include "data/ingest/source/component.h"

namespace welkin::data::ingest {

struct FieldDefaults {
  Options options;                   // with defaults for options that were not given
  std::vector<std::string> assumed;  // a line each, with the flag that decides otherwise
};

// Throws DataError where only the user can choose: more levels of a variable than anybody would take unasked, several grids, or a
// single time.
FieldDefaults choose_defaults(const Component& component, Options options);

// The edge of a patch for so many rows and columns: some hundred tokens, few points cut off.
int64_t choose_patch(int64_t height, int64_t width);

// Names of possible inputs and targets of a box: data sets of three dimensions and more in HDF5, variables in other files.
std::vector<std::string> box_fields(const std::vector<std::filesystem::path>& inputs, bool recursive, const Component& component);

}  // namespace welkin::data::ingest
