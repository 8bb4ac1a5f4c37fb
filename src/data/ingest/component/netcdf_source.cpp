// SPDX-License-Identifier: Apache-2.0
// netCDF-3 and netCDF-4 through netCDF-C: every variable on latitude and longitude, whatever the order of its dimensions, is a
// product of times, members and levels. One element of that product is one plane.
#include <netcdf.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <sstream>

#include "data/ingest/component/netcdf_attributes.h"
#include "data/ingest/component/source.h"

namespace welkin::ingest_component {
namespace {

// An address: the variable's place in order of scanning, and the plane's place in the variable.
constexpr int kPlaneBits = 40;
constexpr int64_t kPlaneMask = (int64_t{1} << kPlaneBits) - 1;
constexpr int kDeepestGroup = 8;
constexpr size_t kMaxRank = 16;
constexpr size_t kMostOthers = 256;  // named when they are not taken

struct Axis {
  DimensionRole role = DimensionRole::Other;
  int dimension = -1;
  int64_t length = 0;
};

struct Variable {
  int group = -1, id = -1;
  std::vector<Axis> axes;             // as in the file
  int latitude = -1, longitude = -1;  // places in `axes`
};

struct PlaneAxes {
  std::vector<double> time{0.0}, level{0.0}, member{0.0};
};

std::string name_of(int group, int variable) {
  char name[NC_MAX_NAME + 1] = {};
  check_netcdf(nc_inq_varname(group, variable, name), "variable");
  return name;
}

Variable look_at(int group, int id) {
  int rank = 0;
  check_netcdf(nc_inq_varndims(group, id, &rank), "variable");
  if (rank < 0 || static_cast<size_t>(rank) > kMaxRank) throw SourceError("a variable with too many dimensions");
  std::vector<int> dimensions(static_cast<size_t>(rank));
  check_netcdf(nc_inq_vardimid(group, id, dimensions.data()), "variable");
  Variable variable;
  variable.group = group, variable.id = id;
  for (const int dimension : dimensions) {
    size_t length = 0;
    check_netcdf(nc_inq_dimlen(group, dimension, &length), "dimension");
    if (length > static_cast<size_t>(WELKIN_INGEST_MAX_PLANES)) throw SourceError("a dimension of impossible length");
    const Axis axis{role_of(group, dimension), dimension, static_cast<int64_t>(length)};
    const int place = static_cast<int>(variable.axes.size());
    if (axis.role == DimensionRole::Latitude) variable.latitude = place;
    if (axis.role == DimensionRole::Longitude) variable.longitude = place;
    variable.axes.push_back(axis);
  }
  return variable;
}

bool is_numeric(const Variable& variable) {
  nc_type type = NC_NAT;
  return nc_inq_vartype(variable.group, variable.id, &type) == NC_NOERR && type != NC_CHAR && type != NC_NAT && type <= NC_UINT64;
}

std::string name_of_dimension(const Variable& variable, const Axis& axis) {
  char name[NC_MAX_NAME + 1] = {};
  nc_inq_dimname(variable.group, axis.dimension, name);
  return name;
}

// The reason why a dimension cannot be used.
std::string why_no_axis(const Variable& variable, const Axis& axis) {
  const std::string name = name_of_dimension(variable, axis);
  const auto place = coordinate_of(variable.group, axis.dimension);
  if (!place) return name + " has no coordinate variable";
  const std::string units = text_attribute(place->group, place->variable, "units");
  if (is_called_time(*place, name))
    return name + " has no units of time such as 'hours since 2001-01-01' (units='" + units + "')";
  return name + " is neither time, member, level, latitude nor longitude" + (units.empty() ? "" : " (units='" + units + "')");
}

// The reason why a variable on latitude and longitude cannot be taken; empty when it can.
std::string objection(const Variable& variable) {
  std::array<int, 6> seen{};
  for (const Axis& axis : variable.axes) {
    const std::string name = name_of_dimension(variable, axis);
    if (axis.role == DimensionRole::Other && axis.length != 1) return "its dimension " + why_no_axis(variable, axis);
    if (axis.role != DimensionRole::Other && ++seen[static_cast<size_t>(axis.role)] > 1) {
      return std::string("two of its dimensions have the role of ") + name;
    }
    if (axis.length == 0) return std::string("its dimension ") + name + " is empty";
  }
  return {};
}

// The length of a forecast beside the time at which it began: the coordinate `forecast_period` of the conventions, not zero.
std::string forecast_period(const Variable& variable) {
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

const Axis* axis_with(const Variable& variable, DimensionRole role) {
  const auto found = std::ranges::find(variable.axes, role, &Axis::role);
  return found == variable.axes.end() ? nullptr : &*found;
}

bool has_dimension(const Variable& variable, int dimension) {
  return std::ranges::find(variable.axes, dimension, &Axis::dimension) != variable.axes.end();
}

// The name of a variable of two and more dimensions, all of them dimensions of `variable`, that holds latitudes or longitudes.
std::string curvilinear(const Variable& variable, DimensionRole role) {
  int count = 0;
  check_netcdf(nc_inq_nvars(variable.group, &count), "variables");
  for (int id = 0; id < count; ++id) {
    const std::string name = name_of(variable.group, id);
    if (id == variable.id || role_of_coordinate({variable.group, id}, name) != role) continue;
    const Variable other = look_at(variable.group, id);
    const bool shared =
        std::ranges::all_of(other.axes, [&](const Axis& axis) { return has_dimension(variable, axis.dimension); });
    if (other.axes.size() >= 2 && shared) return name;
  }
  return {};
}

// The reason why a variable is not on latitude and longitude.
std::string why_no_field(const Variable& variable) {
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
  for (const Axis& axis : variable.axes) {
    if (axis.role != DimensionRole::Other) continue;
    reason += separator + why_no_axis(variable, axis);
    separator = ", ";
  }
  return reason;
}

// True for coordinates, their bounds, and scalars, which are not meant as fields.
bool is_auxiliary(const Variable& variable, const std::set<std::string>& bounds) {
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

// A scalar coordinate (a time without a dimension), named by the attribute `coordinates`.
std::optional<VariablePlace> scalar_time(const Variable& variable) {
  std::istringstream names(text_attribute(variable.group, variable.id, "coordinates"));
  for (std::string name; names >> name;) {
    int id = -1, rank = -1;
    if (nc_inq_varid(variable.group, name.c_str(), &id) != NC_NOERR) continue;
    if (nc_inq_varndims(variable.group, id, &rank) != NC_NOERR || rank != 0) continue;
    if (const VariablePlace place{variable.group, id}; is_time(place)) return place;
  }
  return std::nullopt;
}

std::optional<VariablePlace> time_of(const Variable& variable) {
  const Axis* axis = axis_with(variable, DimensionRole::Time);
  return axis != nullptr ? coordinate_of(variable.group, axis->dimension) : scalar_time(variable);
}

// The reason why a time cannot be taken: it is the start of a forecast, while the fields hold later.
std::string objection_to_time(const Variable& variable) {
  const auto time = time_of(variable);
  if (!time || text_attribute(time->group, time->variable, "standard_name") != "forecast_reference_time") return {};
  const std::string period = forecast_period(variable);
  if (period.empty()) return {};
  return "its time (" + name_of(time->group, time->variable) + ") is that at which the forecast began: add " + period +
         " to it (standard_name=forecast_period), or use GRIB";
}

void describe_level(const Variable& variable, welkin_ingest_variable& out, std::vector<double>& levels) {
  const Axis* axis = axis_with(variable, DimensionRole::Level);
  if (axis == nullptr) return;
  const auto place = coordinate_of(variable.group, axis->dimension);
  levels = axis_values(*place);
  copy_text(name_of(place->group, place->variable), out.level_type);
  const std::string units = text_attribute(place->group, place->variable, "units");
  const bool pascal = units == "Pa";
  const bool hectopascal = units == "hPa" || units.starts_with("mb") || units.starts_with("millibar") || units == "hectopascal";
  out.level_kind = pascal || hectopascal ? WELKIN_INGEST_LEVEL_HPA : WELKIN_INGEST_LEVEL_OTHER;
  if (pascal) std::ranges::transform(levels, levels.begin(), [](double level) { return level / 100.0; });
}

welkin_ingest_variable describe(const Variable& variable, PlaneAxes& axes) {
  welkin_ingest_variable out{};
  copy_text(name_of(variable.group, variable.id), out.name);
  copy_text(text_attribute(variable.group, variable.id, "long_name"), out.long_name);
  copy_text(text_attribute(variable.group, variable.id, "units"), out.units);
  describe_level(variable, out, axes.level);
  if (const auto time = time_of(variable)) {
    axes.time = axis_values(*time);
    copy_text(text_attribute(time->group, time->variable, "units"), out.time_units);
    copy_text(text_attribute(time->group, time->variable, "calendar"), out.calendar);
  }
  if (const Axis* axis = axis_with(variable, DimensionRole::Member)) {
    axes.member = axis_values(*coordinate_of(variable.group, axis->dimension));
  }
  return out;
}

Grid grid_of(const Variable& variable) {
  const auto axis = [&](int place) {
    const auto& dimension = variable.axes[static_cast<size_t>(place)];
    const auto coordinate = coordinate_of(variable.group, dimension.dimension);
    auto values = axis_values(*coordinate);
    if (static_cast<int64_t>(values.size()) != dimension.length)
      throw SourceError("an axis of another length than its dimension");
    return values;
  };
  Grid grid{axis(variable.latitude), axis(variable.longitude)};
  if (static_cast<int64_t>(grid.latitude.size() * grid.longitude.size()) > WELKIN_INGEST_MAX_POINTS) {
    throw SourceError("a grid of impossible size");
  }
  return grid;
}

int32_t member_number(double value) {
  if (!(std::abs(value) < 1e9)) throw SourceError("an impossible ensemble member");
  return static_cast<int32_t>(value);
}

class NetcdfSource final : public Source {
 public:
  explicit NetcdfSource(int file) : file_(file) {
    try {
      collect(file, 0);
    } catch (...) {
      nc_close(file_);
      throw;
    }
  }
  ~NetcdfSource() override { nc_close(file_); }

  void scan(Tables& tables) override {
    for (size_t i = 0; i < variables_.size(); ++i) add(tables, variables_[i], static_cast<int64_t>(i));
    for (const Variable& variable : others_) {
      if (tables.variables.size() >= WELKIN_INGEST_MAX_VARIABLES) break;
      welkin_ingest_variable row{};
      copy_text(name_of(variable.group, variable.id), row.name);
      copy_text(why_no_field(variable), row.skipped);
      row.grid = -1;
      row.is_minor = variable.axes.size() < 2 || !is_numeric(variable) ? 1 : 0;
      add_variable(tables, row);
    }
  }

  void read_plane(int64_t address, std::span<float> values) override {
    const auto ordinal = static_cast<size_t>(address >> kPlaneBits);
    if (address < 0 || ordinal >= variables_.size()) throw SourceError("an impossible address");
    const Variable& variable = variables_[ordinal];
    const auto height = variable.axes[static_cast<size_t>(variable.latitude)].length;
    const auto width = variable.axes[static_cast<size_t>(variable.longitude)].length;
    if (height * width != static_cast<int64_t>(values.size())) throw SourceError("a field of another size");
    std::vector<size_t> start, count;
    place_of(variable, address & kPlaneMask, start, count);
    raw_.resize(values.size());
    check_netcdf(nc_get_vara_double(variable.group, variable.id, start.data(), count.data(), raw_.data()), "values");
    const Packing& packing = packings_[ordinal];
    const bool transposed = variable.latitude > variable.longitude;
    for (int64_t j = 0; j < height; ++j) {
      for (int64_t i = 0; i < width; ++i) {
        const double raw = raw_[static_cast<size_t>(transposed ? i * height + j : j * width + i)];
        values[static_cast<size_t>(j * width + i)] = static_cast<float>(packing.unpack(raw));
      }
    }
  }

 private:
  // Every numeric variable on latitude and longitude, in the order of the file; and the others that may be meant as fields.
  void collect(int group, int depth) {
    if (depth > kDeepestGroup) throw SourceError("groups nested too deeply");
    int count = 0;
    check_netcdf(nc_inq_nvars(group, &count), "variables");
    const std::set<std::string> bounds = bounds_of(group, count);
    for (int id = 0; id < count; ++id) {
      Variable variable = look_at(group, id);
      if (variable.latitude < 0 || variable.longitude < 0 || !is_numeric(variable)) {
        if (others_.size() < kMostOthers && !is_auxiliary(variable, bounds)) others_.push_back(std::move(variable));
        continue;
      }
      if (variables_.size() >= WELKIN_INGEST_MAX_VARIABLES) throw SourceError("too many variables in one file");
      variables_.push_back(std::move(variable));
      packings_.emplace_back(group, id);
    }
    check_netcdf(nc_inq_grps(group, &count, nullptr), "groups");
    std::vector<int> groups(static_cast<size_t>(count));
    if (count > 0) check_netcdf(nc_inq_grps(group, &count, groups.data()), "groups");
    for (const int child : groups) collect(child, depth + 1);
  }

  static void add(Tables& tables, const Variable& variable, int64_t ordinal) {
    PlaneAxes axes;
    welkin_ingest_variable description = describe(variable, axes);
    description.grid = -1;
    std::string reason = objection(variable);
    if (reason.empty()) reason = objection_to_time(variable);
    copy_text(reason, description.skipped);
    if (reason.empty()) description.grid = add_grid(tables.grids, grid_of(variable));
    const int32_t index = add_variable(tables, description);
    if (reason.empty()) add_planes(tables, variable, axes, index, ordinal << kPlaneBits);
  }

  // Adds planes in the order of the file: the last dimension but latitude and longitude runs fastest.
  static void add_planes(Tables& tables, const Variable& variable, const PlaneAxes& axes, int32_t index, int64_t base) {
    int64_t count = 1;
    for (const Axis& axis : variable.axes) {
      const bool inside = axis.role == DimensionRole::Latitude || axis.role == DimensionRole::Longitude;
      if (!inside) count *= axis.length;
      if (count > WELKIN_INGEST_MAX_PLANES) throw SourceError("too many fields in one variable");
    }
    for (int64_t plane = 0; plane < count; ++plane) {
      welkin_ingest_plane row{index, member_number(axes.member.at(0)), axes.level.at(0), axes.time.at(0), base | plane};
      int64_t rest = plane;
      for (auto axis = variable.axes.rbegin(); axis != variable.axes.rend(); ++axis) {
        if (axis->role == DimensionRole::Latitude || axis->role == DimensionRole::Longitude) continue;
        const auto place = static_cast<size_t>(rest % axis->length);
        rest /= axis->length;
        if (axis->role == DimensionRole::Time) row.time = axes.time.at(place);
        if (axis->role == DimensionRole::Level) row.level = axes.level.at(place);
        if (axis->role == DimensionRole::Member) row.member = member_number(axes.member.at(place));
      }
      add_plane(tables, row);
    }
  }

  // The hyperslab of a plane; the inverse of the order above.
  static void place_of(const Variable& variable, int64_t plane, std::vector<size_t>& start, std::vector<size_t>& count) {
    start.assign(variable.axes.size(), 0);
    count.assign(variable.axes.size(), 1);
    for (size_t place = variable.axes.size(); place-- > 0;) {
      const Axis& axis = variable.axes[place];
      if (axis.role == DimensionRole::Latitude || axis.role == DimensionRole::Longitude) {
        count[place] = static_cast<size_t>(axis.length);
      } else {
        start[place] = static_cast<size_t>(plane % axis.length);
        plane /= axis.length;
      }
    }
    if (plane != 0) throw SourceError("a field that is not in the file");
  }

  int file_;
  std::vector<Variable> variables_;
  std::vector<Packing> packings_;  // of the same variables
  std::vector<Variable> others_;   // of which no field can be taken
  std::vector<double> raw_;
};

}  // namespace

std::unique_ptr<Source> open_netcdf(const char* path) {
  int file = -1;
  check_netcdf(nc_open(path, NC_NOWRITE, &file), "cannot open");
  return std::make_unique<NetcdfSource>(file);
}

}  // namespace welkin::ingest_component
