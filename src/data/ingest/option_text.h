// SPDX-License-Identifier: Apache-2.0
// Parses options of the command line. Every function throws ConfigError with an example.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/ingest/options.h"

namespace welkin::data::ingest {

// "t2m", "2t:t2m" (source:new name)
std::vector<VariableChoice> parse_choices(const std::vector<std::string>& texts);
// "32x48", or "32x48+1+0" with the first row and column
Crop parse_crop(std::string_view text);
// "64x512", "1x64x512"
std::vector<int64_t> parse_shape(std::string_view text);

}  // namespace welkin::data::ingest
