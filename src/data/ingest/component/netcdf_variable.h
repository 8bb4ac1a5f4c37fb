// SPDX-License-Identifier: Apache-2.0
// What the variables of a netCDF file are: their axes, and the reasons why one is no field.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/ingest/component/netcdf_attributes.h"

namespace welkin::ingest_component {

struct NetcdfAxis {
  DimensionRole role = DimensionRole::Other;
  int dimension = -1;
  int64_t length = 0;
};

struct NetcdfVariable {
  int group = -1, id = -1;
  std::vector<NetcdfAxis> axes;       // as in the file
  int latitude = -1, longitude = -1;  // places in `axes`
};

std::string name_of(int group, int variable);
NetcdfVariable look_at(int group, int id);
bool is_numeric(const NetcdfVariable& variable);
std::string name_of_dimension(const NetcdfVariable& variable, const NetcdfAxis& axis);
const NetcdfAxis* axis_with(const NetcdfVariable& variable, DimensionRole role);
// The reason why a variable on latitude and longitude cannot be taken; empty when it can.
std::string objection(const NetcdfVariable& variable);
// The reason why a variable is not on latitude and longitude.
std::string why_no_field(const NetcdfVariable& variable);
// True for coordinates, their bounds, and scalars, which are not meant as fields.
bool is_auxiliary(const NetcdfVariable& variable, const std::set<std::string>& bounds);
std::set<std::string> bounds_of(int group, int num_variables);
std::optional<VariablePlace> time_of(const NetcdfVariable& variable);
// The reason why a time cannot be taken: it is the start of a forecast, while the fields hold later. Empty when it can.
std::string objection_to_time(const NetcdfVariable& variable);

}  // namespace welkin::ingest_component
