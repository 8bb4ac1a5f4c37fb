// SPDX-License-Identifier: Apache-2.0
// Other names of a channel: ERA5's short names, and the long ones of ERA5 and WeatherBench2.
#pragma once

#include <string>
#include <vector>

#include "data/storage/stored_array.h"

namespace welkin::data {

// The name of a file's axis of levels; empty where it has none.
std::string level_axis_of(const ArrayFile& file);

// A level of an array with several: "geopotential@500".
std::string name_of_level(const std::string& variable, double level);

// Names under which a file may hold this channel, the likeliest first: of "z500" these are "z500", "geopotential@500", "z@500",
// "geopotential500", "geopotential_500", ...; of "2m_temperature" also "t2m".
std::vector<std::string> names_of_channel(const std::string& channel);

}  // namespace welkin::data
