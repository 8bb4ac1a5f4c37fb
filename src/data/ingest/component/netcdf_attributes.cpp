// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/component/netcdf_attributes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "data/ingest/component/source.h"
#include "data/storage/axis_names.h"

namespace welkin::ingest_component {
namespace {

using data::AxisKind;
using data::is_among;

constexpr size_t kLongestText = 4096;
constexpr size_t kLongestNumbers = 16;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <size_t N>
bool among(std::string_view word, const std::array<std::string_view, N>& list) {
  return std::ranges::find(list, word) != list.end();
}

bool is_integer(nc_type type) { return type != NC_FLOAT && type != NC_DOUBLE; }

// 2^bits for signed integers that stand for unsigned ones, -2^bits for the reverse, 0 for others.
double wrap_of(nc_type type, std::string_view is_unsigned) {
  const bool is_true = data::is_same_name(is_unsigned, "true"), is_false = data::is_same_name(is_unsigned, "false");
  switch (type) {
    case NC_BYTE:
    case NC_UBYTE:
      return (type == NC_BYTE ? is_true : is_false) ? (is_true ? 0x1p8 : -0x1p8) : 0;
    case NC_SHORT:
    case NC_USHORT:
      return (type == NC_SHORT ? is_true : is_false) ? (is_true ? 0x1p16 : -0x1p16) : 0;
    case NC_INT:
    case NC_UINT:
      return (type == NC_INT ? is_true : is_false) ? (is_true ? 0x1p32 : -0x1p32) : 0;
    default:
      return 0;
  }
}

double wrapped(double raw, double wrap) {
  if (wrap > 0 && raw < 0) return raw + wrap;
  return wrap < 0 && raw >= -wrap / 2 ? raw + wrap : raw;
}

// The value that netCDF leaves where nothing was written; one-byte types have none (netCDF users' guide).
std::optional<double> default_fill(nc_type type) {
  switch (type) {
    case NC_SHORT:
      return NC_FILL_SHORT;
    case NC_USHORT:
      return NC_FILL_USHORT;
    case NC_INT:
      return NC_FILL_INT;
    case NC_UINT:
      return NC_FILL_UINT;
    case NC_INT64:
      return static_cast<double>(NC_FILL_INT64);
    case NC_UINT64:
      return static_cast<double>(NC_FILL_UINT64);
    case NC_FLOAT:
      return NC_FILL_FLOAT;
    case NC_DOUBLE:
      return NC_FILL_DOUBLE;
    default:
      return std::nullopt;
  }
}

double as_stored(nc_type type, double value) {
  if (type != NC_FLOAT) return value;
  const volatile float stored = static_cast<float>(value);  // g++ 12 takes both branches for one value from -O2 on
  return static_cast<double>(stored);
}

nc_type attribute_type(int group, int variable, const char* name) {
  nc_type type = NC_NAT;
  return nc_inq_atttype(group, variable, name, &type) == NC_NOERR ? type : NC_NAT;
}

}  // namespace

void check_netcdf(int code, const char* what) {
  if (code != NC_NOERR) throw SourceError(std::string(what) + ": " + nc_strerror(code));
}

std::string text_attribute(int group, int variable, const char* name) {
  nc_type type = NC_NAT;
  size_t length = 0;
  if (nc_inq_att(group, variable, name, &type, &length) != NC_NOERR || length == 0 || length > kLongestText) return {};
  if (type == NC_CHAR) {
    std::string text(length, '\0');
    if (nc_get_att_text(group, variable, name, text.data()) != NC_NOERR) return {};
    return text.substr(0, text.find('\0'));
  }
  if (type != NC_STRING || length != 1) return {};
  char* pointer = nullptr;
  if (nc_get_att_string(group, variable, name, &pointer) != NC_NOERR || pointer == nullptr) return {};
  std::string text(pointer, strnlen(pointer, kLongestText));
  nc_free_string(1, &pointer);
  return text;
}

std::vector<double> number_attribute(int group, int variable, const char* name) {
  nc_type type = NC_NAT;
  size_t length = 0;
  if (nc_inq_att(group, variable, name, &type, &length) != NC_NOERR || length == 0 || length > kLongestNumbers) return {};
  if (type == NC_CHAR || type > NC_UINT64) return {};
  std::vector<double> numbers(length);
  if (nc_get_att_double(group, variable, name, numbers.data()) != NC_NOERR) return {};
  return numbers;
}

bool is_time(const VariablePlace& place) {
  return text_attribute(place.group, place.variable, "units").find(" since ") != std::string::npos;
}

bool is_called_time(const VariablePlace& place, const std::string& name) {
  return is_among(data::array_names(AxisKind::Time), name) ||
         text_attribute(place.group, place.variable, "standard_name") == "time" ||
         text_attribute(place.group, place.variable, "axis") == "T";
}

std::optional<VariablePlace> coordinate_of(int group, int dimension) {
  char name[NC_MAX_NAME + 1] = {};
  if (nc_inq_dimname(group, dimension, name) != NC_NOERR) return std::nullopt;
  for (int depth = 0; depth < 16; ++depth) {
    int variable = -1, rank = 0;
    if (nc_inq_varid(group, name, &variable) == NC_NOERR && nc_inq_varndims(group, variable, &rank) == NC_NOERR && rank == 1) {
      int own = -1;
      if (nc_inq_vardimid(group, variable, &own) == NC_NOERR && own == dimension) return VariablePlace{group, variable};
    }
    int parent = -1;
    if (nc_inq_grp_parent(group, &parent) != NC_NOERR) return std::nullopt;
    group = parent;
  }
  return std::nullopt;
}

DimensionRole role_of_coordinate(const VariablePlace& place, const std::string& name) {
  static constexpr std::array<std::string_view, 6> kNorth{"degrees_north", "degree_north", "degrees_N",
                                                          "degree_N",      "degreesN",     "degreeN"};
  static constexpr std::array<std::string_view, 6> kEast{"degrees_east", "degree_east", "degrees_E",
                                                         "degree_E",     "degreesE",    "degreeE"};
  static constexpr std::array<std::string_view, 9> kPressure{"hPa", "Pa",  "millibars",   "millibar",   "mbar",
                                                             "mb",  "bar", "hectopascal", "sigma_level"};
  static constexpr std::array<std::string_view, 4> kTurned{"grid_latitude", "grid_longitude", "projection_x_coordinate",
                                                           "projection_y_coordinate"};
  const auto is_called = [&](AxisKind kind) { return is_among(data::array_names(kind), name); };
  const std::string units = text_attribute(place.group, place.variable, "units");
  const std::string standard = text_attribute(place.group, place.variable, "standard_name");
  if (among(standard, kTurned)) return DimensionRole::Other;
  if (among(units, kNorth) || standard == "latitude") return DimensionRole::Latitude;
  if (among(units, kEast) || standard == "longitude") return DimensionRole::Longitude;
  // Files made by hand have units "degrees" or none, and a name or an axis that says which.
  const std::string axis = text_attribute(place.group, place.variable, "axis");
  const bool degrees = units.starts_with("deg") && units.find(' ') == std::string::npos;
  if ((degrees && axis == "Y") || ((degrees || units.empty()) && is_called(AxisKind::Latitude))) return DimensionRole::Latitude;
  if ((degrees && axis == "X") || ((degrees || units.empty()) && is_called(AxisKind::Longitude))) return DimensionRole::Longitude;
  if (is_time(place)) return DimensionRole::Time;
  if (is_called(AxisKind::Member) || standard == "realization") return DimensionRole::Member;
  const bool vertical = axis == "Z" || !text_attribute(place.group, place.variable, "positive").empty();
  if (vertical || among(units, kPressure) || is_called(AxisKind::Pressure) || is_called(AxisKind::Level))
    return DimensionRole::Level;
  return DimensionRole::Other;
}

DimensionRole role_of(int group, int dimension) {
  char name[NC_MAX_NAME + 1] = {};
  check_netcdf(nc_inq_dimname(group, dimension, name), "dimension");
  const auto coordinate = coordinate_of(group, dimension);
  const DimensionRole role = coordinate ? role_of_coordinate(*coordinate, name) : DimensionRole::Other;
  if (role != DimensionRole::Other) return role;
  if (time_along(group, dimension)) return DimensionRole::Time;
  return !coordinate && is_among(data::array_names(AxisKind::Member), name) ? DimensionRole::Member : DimensionRole::Other;
}

std::optional<VariablePlace> time_along(int group, int dimension) {
  const auto coordinate = coordinate_of(group, dimension);
  const bool has_time = coordinate && is_time(*coordinate);
  if (has_time && text_attribute(coordinate->group, coordinate->variable, "standard_name") != "forecast_reference_time")
    return coordinate;
  int count = 0;
  check_netcdf(nc_inq_nvars(group, &count), "variables");
  for (int id = 0; id < count; ++id) {
    int rank = 0, own = -1;
    if (nc_inq_varndims(group, id, &rank) != NC_NOERR || rank != 1) continue;
    const VariablePlace place{group, id};
    const bool is_along = nc_inq_vardimid(group, id, &own) == NC_NOERR && own == dimension;
    if (is_along && is_time(place) && text_attribute(group, id, "standard_name") == "time") return place;
  }
  return has_time ? coordinate : std::nullopt;
}

Packing::Packing(int group, int variable) : low_(-kInfinity), high_(kInfinity) {
  nc_type type = NC_NAT;
  check_netcdf(nc_inq_vartype(group, variable, &type), "type");
  const auto factor = number_attribute(group, variable, "scale_factor");
  const auto offset = number_attribute(group, variable, "add_offset");
  if (!factor.empty()) factor_ = factor[0];
  if (!offset.empty()) offset_ = offset[0];
  wrap_ = wrap_of(type, text_attribute(group, variable, "_Unsigned"));
  read_missing(group, variable, type);
  read_range(group, variable, type);
}

void Packing::read_missing(int group, int variable, nc_type type) {
  // A fill value of another precision than the values means the nearest of them: 1e20 in double beside floats.
  const auto add = [&](const char* name) {
    for (const double value : number_attribute(group, variable, name)) missing_.push_back(as_stored(type, value));
    return attribute_type(group, variable, name) != NC_NAT;
  };
  const bool has_fill = add("_FillValue");
  add("missing_value");
  if (const auto fill = default_fill(type); !has_fill && fill) missing_.push_back(*fill);
  for (double& value : missing_) value = wrapped(value, wrap_);
}

void Packing::read_range(int group, int variable, nc_type type) {
  const char* named = attribute_type(group, variable, "valid_range") != NC_NAT ? "valid_range" : "valid_min";
  auto range = number_attribute(group, variable, "valid_range");
  if (range.size() == 2) {
    low_ = range[0], high_ = range[1];
  } else {
    const auto low = number_attribute(group, variable, "valid_min");
    const auto high = number_attribute(group, variable, "valid_max");
    if (!low.empty()) low_ = low[0];
    if (!high.empty()) high_ = high[0];
    if (low.empty()) named = "valid_max";
  }
  low_ = as_stored(type, low_), high_ = as_stored(type, high_);
  // A range of another kind than the packed integers can only be meant for the physical values.
  const nc_type range_type = attribute_type(group, variable, named);
  range_unpacked_ = is_integer(type) && (range_type == NC_FLOAT || range_type == NC_DOUBLE);
  if (range_unpacked_) return;
  if (std::isfinite(low_)) low_ = wrapped(low_, wrap_);
  if (std::isfinite(high_)) high_ = wrapped(high_, wrap_);
}

double Packing::unpack(double raw) const {
  raw = wrapped(raw, wrap_);
  const double value = factor_ * raw + offset_;
  const double judged = range_unpacked_ ? value : raw;
  const bool missing = std::ranges::find(missing_, raw) != missing_.end() || !(judged >= low_ && judged <= high_);
  return missing ? std::numeric_limits<double>::quiet_NaN() : value;
}

std::vector<double> axis_values(const VariablePlace& place) {
  int rank = 0;
  check_netcdf(nc_inq_varndims(place.group, place.variable, &rank), "axis");
  size_t length = 1;
  if (rank == 1) {
    int dimension = -1;
    check_netcdf(nc_inq_vardimid(place.group, place.variable, &dimension), "axis");
    check_netcdf(nc_inq_dimlen(place.group, dimension, &length), "axis");
  }
  if (rank > 1 || length > static_cast<size_t>(WELKIN_INGEST_MAX_AXIS)) throw SourceError("an axis of impossible size");
  std::vector<double> values(length);
  if (length > 0) check_netcdf(nc_get_var_double(place.group, place.variable, values.data()), "axis");
  const Packing packing(place.group, place.variable);
  for (double& value : values) value = packing.unpack(value);
  return values;
}

}  // namespace welkin::ingest_component
