// SPDX-License-Identifier: Apache-2.0
// Attributes of netCDF variables and their meaning by the CF conventions: roles of dimensions, packing, points without a value.
#pragma once

#include <netcdf.h>

#include <optional>
#include <string>
#include <vector>

namespace welkin::ingest_component {

// Throws SourceError with netCDF's text.
void check_netcdf(int code, const char* what);

// Empty when absent or not text; cut at 4096 bytes.
std::string text_attribute(int group, int variable, const char* name);
// Empty when absent, not numeric or longer than 16.
std::vector<double> number_attribute(int group, int variable, const char* name);

enum class DimensionRole { Latitude, Longitude, Time, Level, Member, Other };

struct VariablePlace {
  int group = -1, variable = -1;
};

// The one-dimensional coordinate variable of a dimension, looked for in the group and its parents.
std::optional<VariablePlace> coordinate_of(int group, int dimension);
// The variable of valid times along a dimension: its coordinate, or another one, as valid_time along the leads of one forecast.
std::optional<VariablePlace> time_along(int group, int dimension);
// By its coordinate; members may have none.
DimensionRole role_of(int group, int dimension);
// The role of a coordinate variable, by its name and attributes.
DimensionRole role_of_coordinate(const VariablePlace& place, const std::string& name);
bool is_time(const VariablePlace& place);
// True by its name, standard name or axis, whatever its units.
bool is_called_time(const VariablePlace& place, const std::string& name);

// raw -> physical: factor * raw + offset, NaN where the raw value stands for none (CF conventions 1.10, section 2.5 and 8.1).
class Packing {
 public:
  Packing(int group, int variable);
  double unpack(double raw) const;

 private:
  void read_missing(int group, int variable, nc_type type);
  void read_range(int group, int variable, nc_type type);

  double factor_ = 1.0, offset_ = 0.0;
  double wrap_ = 0.0;  // by the attribute _Unsigned: 2^bits for signed integers that stand for unsigned ones, -2^bits the reverse
  std::vector<double> missing_;
  double low_, high_;            // valid range of the raw values
  bool range_unpacked_ = false;  // the range is in physical units
};

// Points along an axis as numbers, at most WELKIN_INGEST_MAX_AXIS.
std::vector<double> axis_values(const VariablePlace& place);

}  // namespace welkin::ingest_component
