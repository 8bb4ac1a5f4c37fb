// SPDX-License-Identifier: Apache-2.0
#include "data/forecast/field_names.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/text.h"
#include "data/storage/axis_names.h"

namespace welkin::data {
namespace {

struct Names {
  std::string_view names[3];  // short ones and the long one; empty: fewer
};

constexpr std::array kSurface{Names{{"t2m", "2t", "2m_temperature"}},
                              Names{{"u10", "10u", "10m_u_component_of_wind"}},
                              Names{{"v10", "10v", "10m_v_component_of_wind"}},
                              Names{{"100u", "", "100m_u_component_of_wind"}},
                              Names{{"100v", "", "100m_v_component_of_wind"}},
                              Names{{"d2m", "2d", "2m_dewpoint_temperature"}},
                              Names{{"msl", "mslp", "mean_sea_level_pressure"}},
                              Names{{"sp", "", "surface_pressure"}},
                              Names{{"tp", "", "total_precipitation"}},
                              Names{{"tp06", "tp6h", "total_precipitation_6hr"}},
                              Names{{"sst", "", "sea_surface_temperature"}},
                              Names{{"tcwv", "", "total_column_water_vapour"}},
                              Names{{"tcc", "", "total_cloud_cover"}}};
constexpr std::array kLevels{Names{{"z", "", "geopotential"}},        Names{{"t", "", "temperature"}},
                             Names{{"u", "", "u_component_of_wind"}}, Names{{"v", "", "v_component_of_wind"}},
                             Names{{"q", "", "specific_humidity"}},   Names{{"r", "", "relative_humidity"}},
                             Names{{"w", "", "vertical_velocity"}}};

// All names of a row that has this one; itself where none has.
template <typename Rows>
std::vector<std::string> row_of(const Rows& rows, const std::string& name) {
  std::vector<std::string> names{name};
  for (const Names& row : rows) {
    if (std::ranges::find(row.names, name) == std::end(row.names)) continue;
    for (const std::string_view other : row.names) {
      if (!other.empty() && other != name) names.emplace_back(other);
    }
  }
  return names;
}

}  // namespace

std::string level_axis_of(const ArrayFile& file) {
  for (const std::string_view name : array_names(AxisKind::Pressure)) {
    if (file.has(name) && file.array(name)->facts().shape.size() == 1) return std::string(name);
  }
  return {};
}

std::string name_of_level(const std::string& variable, double level) { return cat(variable, "@", level); }

std::vector<std::string> names_of_channel(const std::string& channel) {
  // ERA5's wind at 100 m and at 100 hPa have one short name and one unit.
  if (channel == "u100" || channel == "v100") return {channel};
  std::vector<std::string> names = row_of(kSurface, channel);
  if (names.size() > 1) return names;                                // the 10 of "u10" is no level
  const size_t digits = channel.find_last_not_of("0123456789") + 1;  // 0 for a name of digits alone
  if (digits == 0 || digits == channel.size() || channel.size() - digits > 4) return names;
  const std::string level = channel.substr(digits), stem = channel.substr(0, digits);
  const std::string quantity = stem.ends_with('_') || stem.ends_with('@') ? stem.substr(0, stem.size() - 1) : stem;
  for (const std::string& name : row_of(kLevels, quantity)) {
    for (const char* between : {"@", "", "_"}) names.push_back(cat(name, between, level));
  }
  return names;
}

}  // namespace welkin::data
