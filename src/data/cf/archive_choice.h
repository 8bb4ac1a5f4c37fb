// SPDX-License-Identifier: Apache-2.0
// Requests for variables, and the names of variables on levels. Torch-free.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/storage/stored_array.h"

namespace welkin::data {

struct VariableRequest {
  std::string name;                 // of the array
  std::vector<std::string> others;  // its names in other archives
  std::optional<double> level;      // one of its levels; nothing: all that are wanted
  std::string new_name;             // of the variable, or of the channel where a level is named; empty: as it is
};

// "geopotential@500:z500", "2m_temperature|tas" (what is called tas in other archives). ConfigError for an empty name and a level
// that is no number.
VariableRequest parse_variable_request(const std::string& text);

// The name of a variable on a level: geopotential500, theta_3 where a variable of other levels has several.
std::string level_channel_name(const std::string& name, double level, bool on_pressure, size_t num_levels);

// Index of the level; nothing where it is not there.
std::optional<int64_t> level_index(const std::vector<double>& levels, double wanted);

// "500", "0.995"
std::string level_text(double level);
std::string levels_text(const std::vector<double>& levels);

}  // namespace welkin::data
