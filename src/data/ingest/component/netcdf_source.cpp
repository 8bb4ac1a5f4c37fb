// SPDX-License-Identifier: Apache-2.0
// netCDF-3 and netCDF-4 through netCDF-C: every variable on latitude and longitude, whatever the order of its dimensions, is a
// product of times, members and levels. One element of that product is one plane.
#include <netcdf.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "data/ingest/component/netcdf_attributes.h"
#include "data/ingest/component/netcdf_variable.h"
#include "data/ingest/component/source.h"

namespace welkin::ingest_component {
namespace {

// An address: the variable's place in order of scanning, and the plane's place in the variable.
constexpr int kPlaneBits = 40;
constexpr int64_t kPlaneMask = (int64_t{1} << kPlaneBits) - 1;
constexpr int kDeepestGroup = 8;
constexpr size_t kMostOthers = 256;  // named when they are not taken

struct PlaneAxes {
  std::vector<double> time{0.0}, level{0.0}, member{0.0};
};

void describe_level(const NetcdfVariable& variable, welkin_ingest_variable& out, std::vector<double>& levels) {
  const NetcdfAxis* axis = axis_with(variable, DimensionRole::Level);
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

welkin_ingest_variable describe(const NetcdfVariable& variable, PlaneAxes& axes) {
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
  if (const NetcdfAxis* axis = axis_with(variable, DimensionRole::Member)) {
    const auto place = coordinate_of(variable.group, axis->dimension);
    axes.member.resize(static_cast<size_t>(axis->length));
    std::iota(axes.member.begin(), axes.member.end(), 0.0);
    if (place) axes.member = axis_values(*place);
  }
  return out;
}

Grid grid_of(const NetcdfVariable& variable) {
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
    for (const NetcdfVariable& variable : others_) {
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
    const NetcdfVariable& variable = variables_[ordinal];
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
      NetcdfVariable variable = look_at(group, id);
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

  static void add(Tables& tables, const NetcdfVariable& variable, int64_t ordinal) {
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
  static void add_planes(Tables& tables, const NetcdfVariable& variable, const PlaneAxes& axes, int32_t index, int64_t base) {
    int64_t count = 1;
    for (const NetcdfAxis& axis : variable.axes) {
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
  static void place_of(const NetcdfVariable& variable, int64_t plane, std::vector<size_t>& start, std::vector<size_t>& count) {
    start.assign(variable.axes.size(), 0);
    count.assign(variable.axes.size(), 1);
    for (size_t place = variable.axes.size(); place-- > 0;) {
      const NetcdfAxis& axis = variable.axes[place];
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
  std::vector<NetcdfVariable> variables_;
  std::vector<Packing> packings_;       // of the same variables
  std::vector<NetcdfVariable> others_;  // of which no field can be taken
  std::vector<double> raw_;
};

}  // namespace

std::unique_ptr<Source> open_netcdf(const char* path) {
  int file = -1;
  check_netcdf(nc_open(path, NC_NOWRITE, &file), "cannot open");
  return std::make_unique<NetcdfSource>(file);
}

}  // namespace welkin::ingest_component
