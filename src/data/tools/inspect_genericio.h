// SPDX-License-Identifier: Apache-2.0
// The content of a GenericIO file of particles (data/formats/genericio).
#pragma once

#include <filesystem>
#include <string>

#include "data/tools/inspect.h"

namespace welkin::data {

// The box, the variables, and ranges of values of the first ranks. DataError for a damaged file.
std::string inspect_genericio(const std::filesystem::path& path, const InspectOptions& options);

}  // namespace welkin::data
