// SPDX-License-Identifier: Apache-2.0
// One field of a file as a picture.
#pragma once

#include <filesystem>
#include <string>

#include "data/check/check_child.h"

namespace welkin::data {

struct FieldPlotOptions {
  CheckHelper helper{};          // of ingest::Component
  std::filesystem::path output;  // *.png or *.svg
  std::string channel;           // a channel or variable by name or number; empty: the first
  std::string time;              // a place along the axis before rows and columns, from 0, or a date; empty: the first, of a box
                                 // the middle plane
};

// GRIB and netCDF as welkin data ingest sees them; else an array of any format, its last two axes. Returns a line that names
// the field drawn. DataError or ConfigError for a field that is not there.
std::string plot_field(const std::filesystem::path& path, const FieldPlotOptions& options);

}  // namespace welkin::data
