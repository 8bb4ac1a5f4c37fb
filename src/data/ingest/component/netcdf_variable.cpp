// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/component/netcdf_variable.h"

#include <netcdf.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "data/ingest/component/source.h"
#include "data/storage/axis_names.h"

namespace welkin::ingest_component {
namespace {

constexpr size_t kMaxRank = 16;

// Two axes of one role, as a level beside the height above ground: one of length 1 says nothing.
void drop_single_axes(NetcdfVariable& variable) {
  for (NetcdfAxis& axis : variable.axes) {
    if (axis.length != 1 || (axis.role != DimensionRole::Level && axis.role != DimensionRole::Member)) continue;
    const auto is_longer = [&](const NetcdfAxis& other) { return other.role == axis.role && other.length > 1; };
    if (std::ranges::any_of(variable.axes, is_longer)) axis.role = DimensionRole::Other;
  }
}

// The reason why a dimension cannot be used.
std::string why_no_axis(const NetcdfVariable& variable, const NetcdfAxis& axis) {
  const std::string name = name_of_dimension(variable, axis);
  const auto place = coordinate_of(variable.group, axis.dimension);
  if (!place) return name + " has no coordinate variable";
  const std::string units = text_attribute(place->group, place->variable, "units");
  if (is_called_time(*place, name))
    return name + " has no units of time such as 'hours since 2001-01-01' (units='" + units + "')";
  return name + " is neither time, member, level, latitude nor longitude" + (units.empty() ? "" : " (units='" + units + "')");
}

// The length of a forecast beside the time at which it began: the coordinate `forecast_period` of the conventions, not zero.
std::string forecast_period(const NetcdfVariable& variable) {
  int count = 0;
  check_netcdf(nc_inq_nvars(variable.group, &count), "variables");
  for (int id = 0; id < count; ++id) {
    int rank = 0;
    if (text_attribute(variable.group, id, "standard_name") != "forecast_period") continue;
    if (nc_inq_varndims(variable.group, id, &rank) != NC_NOERR || rank > 1) continue;
    const auto periods = axis_values({variable.group, id});
    if (std::ranges::any_of(periods, [](double period) { return period != 0; })) return name_of(variable.group, id);
  }
  return {};
}

std::string standard_name(const VariablePlace& place) { return text_attribute(place.group, place.variable, "standard_name"); }

// A dimension that is called the lead of a forecast, and whose lead is not zero.
std::string lead_of(const NetcdfVariable& variable) {
  for (const NetcdfAxis& axis : variable.axes) {
    const std::string name = name_of_dimension(variable, axis);
    const auto place = coordinate_of(variable.group, axis.dimension);
    if (axis.role != DimensionRole::Other || !place || !data::is_axis(data::AxisKind::Lead, name)) continue;
    if (std::ranges::any_of(axis_values(*place), [](double lead) { return lead != 0; })) return name;
  }
  return {};
}

bool has_dimension(const NetcdfVariable& variable, int dimension) {
  return std::ranges::find(variable.axes, dimension, &NetcdfAxis::dimension) != variable.axes.end();
}

// The name of a variable of two and more dimensions, all of them dimensions of `variable`, that holds latitudes or longitudes.
std::string curvilinear(const NetcdfVariable& variable, DimensionRole role) {
  int count = 0;
  check_netcdf(nc_inq_nvars(variable.group, &count), "variables");
  for (int id = 0; id < count; ++id) {
    const std::string name = name_of(variable.group, id);
    if (id == variable.id || role_of_coordinate({variable.group, id}, name) != role) continue;
    const NetcdfVariable other = look_at(variable.group, id);
    const bool shared =
        std::ranges::all_of(other.axes, [&](const NetcdfAxis& axis) { return has_dimension(variable, axis.dimension); });
    if (other.axes.size() >= 2 && shared) return name;
  }
  return {};
}

// A scalar coordinate (a time without a dimension), named by the attribute `coordinates`. That of the fields comes before that at
// which a forecast began.
std::optional<VariablePlace> scalar_time(const NetcdfVariable& variable) {
  std::optional<VariablePlace> found;
  std::istringstream names(text_attribute(variable.group, variable.id, "coordinates"));
  for (std::string name; names >> name;) {
    int id = -1, rank = -1;
    if (nc_inq_varid(variable.group, name.c_str(), &id) != NC_NOERR) continue;
    if (nc_inq_varndims(variable.group, id, &rank) != NC_NOERR || rank != 0) continue;
    const VariablePlace place{variable.group, id};
    if (is_time(place) && (!found || standard_name(*found) == "forecast_reference_time")) found = place;
  }
  return found;
}

}  // namespace

std::string name_of(int group, int variable) {
  char name[NC_MAX_NAME + 1] = {};
  check_netcdf(nc_inq_varname(group, variable, name), "variable");
  return name;
}

NetcdfVariable look_at(int group, int id) {
  int rank = 0;
  check_netcdf(nc_inq_varndims(group, id, &rank), "variable");
  if (rank < 0 || static_cast<size_t>(rank) > kMaxRank) throw SourceError("a variable with too many dimensions");
  std::vector<int> dimensions(static_cast<size_t>(rank));
  check_netcdf(nc_inq_vardimid(group, id, dimensions.data()), "variable");
  NetcdfVariable variable;
  variable.group = group, variable.id = id;
  for (const int dimension : dimensions) {
    size_t length = 0;
    check_netcdf(nc_inq_dimlen(group, dimension, &length), "dimension");
    if (length > static_cast<size_t>(WELKIN_INGEST_MAX_PLANES)) throw SourceError("a dimension of impossible length");
    const NetcdfAxis axis{role_of(group, dimension), dimension, static_cast<int64_t>(length)};
    const int place = static_cast<int>(variable.axes.size());
    if (axis.role == DimensionRole::Latitude) variable.latitude = place;
    if (axis.role == DimensionRole::Longitude) variable.longitude = place;
    variable.axes.push_back(axis);
  }
  drop_single_axes(variable);
  return variable;
}

bool is_numeric(const NetcdfVariable& variable) {
  nc_type type = NC_NAT;
  return nc_inq_vartype(variable.group, variable.id, &type) == NC_NOERR && type != NC_CHAR && type != NC_NAT && type <= NC_UINT64;
}

std::string name_of_dimension(const NetcdfVariable& variable, const NetcdfAxis& axis) {
  char name[NC_MAX_NAME + 1] = {};
  nc_inq_dimname(variable.group, axis.dimension, name);
  return name;
}

const NetcdfAxis* axis_with(const NetcdfVariable& variable, DimensionRole role) {
  const auto found = std::ranges::find(variable.axes, role, &NetcdfAxis::role);
  return found == variable.axes.end() ? nullptr : &*found;
}

std::string objection(const NetcdfVariable& variable) {
  std::array<int, 6> seen{};
  for (const NetcdfAxis& axis : variable.axes) {
    const std::string name = name_of_dimension(variable, axis);
    if (axis.role == DimensionRole::Other && axis.length != 1) {
      const auto place = coordinate_of(variable.group, axis.dimension);
      const bool is_time = place && is_called_time(*place, name);
      return "its dimension " + why_no_axis(variable, axis) + (is_time ? "" : ": " + data::axis_remedy(name));
    }
    if (axis.role != DimensionRole::Other && ++seen[static_cast<size_t>(axis.role)] > 1) {
      return std::string("two of its dimensions have the role of ") + name;
    }
    if (axis.length == 0) return std::string("its dimension ") + name + " is empty";
  }
  return {};
}

std::string why_no_field(const NetcdfVariable& variable) {
  nc_type type = NC_NAT;
  nc_inq_vartype(variable.group, variable.id, &type);
  if (type == NC_CHAR || type == NC_STRING) return "it holds text";
  if (!is_numeric(variable)) return "it holds no numbers";
  const std::string latitude = curvilinear(variable, DimensionRole::Latitude);
  const std::string longitude = curvilinear(variable, DimensionRole::Longitude);
  if (!latitude.empty() && !longitude.empty()) {
    return "its latitude and longitude (" + latitude + ", " + longitude +
           ") have two dimensions: interpolate it to a regular grid first (cdo remapbil)";
  }
  std::string reason = variable.latitude >= 0    ? "it has no dimension of longitude"
                       : variable.longitude >= 0 ? "it has no dimension of latitude"
                                                 : "it has no dimensions of latitude and longitude";
  const char* separator = ": ";
  for (const NetcdfAxis& axis : variable.axes) {
    if (axis.role != DimensionRole::Other) continue;
    reason += separator + why_no_axis(variable, axis);
    separator = ", ";
  }
  return reason;
}

bool is_auxiliary(const NetcdfVariable& variable, const std::set<std::string>& bounds) {
  const std::string name = name_of(variable.group, variable.id);
  if (variable.axes.empty() || bounds.contains(name)) return true;
  if (variable.axes.size() == 1 && name == name_of_dimension(variable, variable.axes.front())) return true;
  const DimensionRole role = role_of_coordinate({variable.group, variable.id}, name);
  return role == DimensionRole::Latitude || role == DimensionRole::Longitude || role == DimensionRole::Time;
}

std::set<std::string> bounds_of(int group, int num_variables) {
  std::set<std::string> names;
  for (int id = 0; id < num_variables; ++id) {
    for (const char* attribute : {"bounds", "climatology"}) names.insert(text_attribute(group, id, attribute));
  }
  return names;
}

std::optional<VariablePlace> time_of(const NetcdfVariable& variable) {
  const NetcdfAxis* axis = axis_with(variable, DimensionRole::Time);
  return axis != nullptr ? time_along(variable.group, axis->dimension) : scalar_time(variable);
}

std::string objection_to_time(const NetcdfVariable& variable) {
  const auto time = time_of(variable);
  const std::string meaning = time ? standard_name(*time) : "time";
  if (meaning == "time") return {};
  const bool is_start = meaning == "forecast_reference_time";
  const std::string period = is_start ? forecast_period(variable) : lead_of(variable);
  if (period.empty()) return {};
  return "its time (" + name_of(time->group, time->variable) + ") is that at which the forecast began: add " + period +
         " to it (standard_name=" + (is_start ? "forecast_period" : "time") + "), or use GRIB";
}

}  // namespace welkin::ingest_component
