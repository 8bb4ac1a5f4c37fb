// SPDX-License-Identifier: Apache-2.0
// The names that files give their axes, and the arrays with the values along them: the one table that all readers share.
// Headers only, since libwelkin_ingest.so uses it too. Torch-free.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace welkin::data {

enum class AxisKind { Time, Lead, Member, Channel, Pressure, Level, Latitude, Longitude, Depth, Height, Width };

struct AxisNames {
  AxisKind kind;
  size_t num_of_arrays;  // so many, from the front, also name the array with the values; a row "y" may hold metres
  std::array<std::string_view, 10> names;
};

// The first name of a row is ours, and CF's standard_name where there is one.
inline constexpr std::array kAxisNames{
    AxisNames{AxisKind::Time, 6, {"time", "valid_time", "times", "t", "date", "datetime"}},
    AxisNames{AxisKind::Lead, 4, {"lead_time", "prediction_timedelta", "step", "leadtime"}},
    AxisNames{AxisKind::Member, 6, {"number", "realization", "member", "ensemble", "ens", "sample"}},
    AxisNames{AxisKind::Channel, 5, {"channel", "channels", "variables", "variable", "band", "c"}},
    AxisNames{AxisKind::Pressure, 4, {"level", "pressure_level", "isobaricInhPa", "plev"}},  // hPa where there are no units
    AxisNames{AxisKind::Level,
              10,
              {"height", "lev", "depth", "altitude", "heightAboveGround", "heightAboveSea", "depthBelowLandLayer", "hybrid",
               "model_level", "isobaricInPa"}},
    AxisNames{AxisKind::Latitude, 6, {"latitude", "lat", "nav_lat", "latitudes", "lats", "xlat", "y", "h"}},
    AxisNames{AxisKind::Longitude, 6, {"longitude", "lon", "nav_lon", "longitudes", "lons", "xlong", "x", "w"}},
    AxisNames{AxisKind::Depth, 0, {"depth", "d", "z"}},
    AxisNames{AxisKind::Height, 0, {"height", "h", "y"}},
    AxisNames{AxisKind::Width, 0, {"width", "w", "x"}}};

constexpr char lower_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// ASCII letters count without their case: "Lat", "LATITUDE".
constexpr bool is_same_name(std::string_view one, std::string_view other) {
  return std::ranges::equal(one, other, {}, lower_letter, lower_letter);
}

// Names of the array with the values along such an axis.
constexpr std::span<const std::string_view> array_names(AxisKind kind) {
  const AxisNames& row = kAxisNames[static_cast<size_t>(kind)];
  return std::span(row.names).first(row.num_of_arrays);
}

// Our own name of such an axis.
constexpr std::string_view common_name(AxisKind kind) { return kAxisNames[static_cast<size_t>(kind)].names[0]; }

// Names of such an axis.
constexpr std::span<const std::string_view> axis_names(AxisKind kind) {
  const AxisNames& row = kAxisNames[static_cast<size_t>(kind)];
  size_t count = 0;
  while (count < row.names.size() && !row.names[count].empty()) ++count;
  return std::span(row.names).first(count);
}

constexpr bool is_among(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::any_of(names, [&](std::string_view known) { return is_same_name(known, name); });
}

constexpr bool is_axis(AxisKind kind, std::string_view name) { return is_among(axis_names(kind), name); }

// Also the channels of one array among several: "static_channel".
constexpr bool is_channel_axis(std::string_view name) { return is_axis(AxisKind::Channel, name) || name.ends_with("_channel"); }

// What the user does with an axis along which no field can be chosen; it follows "the axis NAME ...: ".
inline std::string axis_remedy(const std::string& name) {
  if (is_same_name(name, "expver")) {
    return "it holds ERA5 and its first release ERA5T, each missing where the other is not. Merge them first, in xarray with "
           "d.isel(expver=0, drop=True).combine_first(d.isel(expver=1, drop=True))";
  }
  if (is_axis(AxisKind::Lead, name)) {
    return "a forecast has a valid time for each lead. Choose one lead first, in xarray with d.isel(" + name +
           "=0, drop=True).swap_dims(time='valid_time')";
  }
  return "choose one place along it first, as with ncks -d " + name + ",0 IN.nc OUT.nc";
}

static_assert([] {
  for (size_t i = 0; i < kAxisNames.size(); ++i) {
    if (kAxisNames[i].kind != static_cast<AxisKind>(i)) return false;
  }
  return true;
}());

}  // namespace welkin::data
