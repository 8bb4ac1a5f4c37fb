// SPDX-License-Identifier: Apache-2.0
// Internal to inspect*.cpp: the part that describes HDF5, and the texts that every format shares.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "data/storage/stored_array.h"
#include "data/tools/inspect.h"
#include "data/tools/statistics.h"

namespace welkin::data {

std::string inspect_hdf5(const std::filesystem::path& path, const InspectOptions& options);

// Formats that array_file.h opens and that have no part of their own here.
std::string inspect_arrays(const std::filesystem::path& path, const InspectOptions& options);

// "min ..., max ..., mean ..., std ...", and the numbers of values that are missing or not finite.
std::string moments_text(const RunningMoments& moments, Missing missing = Missing::None);

// Lines about an array of one dimension with the places or times of the others: first and last place, dates by the CF
// conventions with step and gaps. Empty for other arrays.
std::string coordinate_lines(const ArrayFile& file, const std::string& name);
// The latitudes that training assumes for fields whose file does not give them, as a line. Empty for other arrays.
std::string assumed_latitudes_line(const ArrayFile& file, const std::string& name);
// The line about an array of texts.
std::string text_line(const ArrayFile& file, const std::string& name);
// Attributes that say how HDF5, netCDF-4 or Zarr keep an array, and nothing about its values.
bool is_format_attribute(const ArrayFile& file, const std::string& object, std::string_view name);

}  // namespace welkin::data
