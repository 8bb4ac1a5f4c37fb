// SPDX-License-Identifier: Apache-2.0
// The data that welkin data ingest would find: the variables of GRIB and netCDF files, one file or a folder of them.
#pragma once

#include <filesystem>
#include <string>

#include "data/ingest/source/inventory.h"
#include "data/tools/inspect.h"

namespace welkin::data {

enum class FieldFormat { None, Fields, Particles, Folder };  // Fields: GRIB, netCDF-3

// The format by content. Folder: one that is no array itself. None: formats of array_file.h and others.
FieldFormat field_format_of(const std::filesystem::path& path);

// Everything that one GRIB or netCDF file holds. DataError where libwelkin_ingest.so is not there, or the file is broken.
ingest::Inventory inventory_of(const ingest::Component& component, const std::filesystem::path& path);

// One file: variables, levels, times with step and gaps, ranges of values; what cannot be read as fields, and why.
std::string inspect_fields(const std::filesystem::path& path, const InspectOptions& options);

// A table of the files directly in a folder, and the times of all of them together.
std::string inspect_folder(const std::filesystem::path& folder, const InspectOptions& options);

// "744, 2019-03-01T00:00:00 to 2019-03-31T23:00:00, step 1 h, 2 gaps (first after ...)"
std::string times_text(const std::vector<int64_t>& times, Calendar calendar);

}  // namespace welkin::data
