// SPDX-License-Identifier: Apache-2.0
// Internal to inspect*.cpp: the part that describes HDF5, and the words that every format shares.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "data/tools/inspect.h"
#include "data/tools/statistics.h"

namespace welkin::data {

std::string inspect_hdf5(const std::filesystem::path& path, const InspectOptions& options);

// Formats that array_file.h opens and that have no part of their own here.
std::string inspect_arrays(const std::filesystem::path& path, const InspectOptions& options);

// "min ..., max ..., mean ..., std ..."
std::string moments_text(const RunningMoments& moments);

}  // namespace welkin::data
