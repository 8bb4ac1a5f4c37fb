// SPDX-License-Identifier: Apache-2.0
// The content of a file or folder, for people: every format of array_file.h, and safetensors; known by its content. Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "data/check/check_child.h"

namespace welkin::data {

struct InspectOptions {
  int64_t most_sampled_values = int64_t{1} << 22;  // read of each data set for the ranges
  int64_t most_datasets = 200;                     // described
  CheckHelper helper{};                            // of ingest::Component, for GRIB and netCDF-3
};

// Many lines; characters of the file that are not printable (core/printable.h) are replaced. DataError for an unknown format or a
// broken file.
std::string inspect_file(const std::filesystem::path& path, const InspectOptions& options = {});

}  // namespace welkin::data
