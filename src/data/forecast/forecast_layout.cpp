// SPDX-License-Identifier: Apache-2.0
#include "data/forecast/forecast_layout.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "core/text.h"
#include "data/sample/dataset.h"

namespace welkin::data {
namespace {

constexpr double kHour = 3600;
constexpr const char* kTimeUnits = "hours since 1970-01-01 00:00:00";

// Names that the CF conventions know, of channels as ERA5, CMIP and ocean models call them, with the unit that they ask for. A
// level follows those that end in '#'.
struct StandardName {
  std::string_view channel, name, unit;
};
constexpr std::array<StandardName, 26> kStandardNames{{
    {"t2m", "air_temperature", "K"},
    {"2t", "air_temperature", "K"},
    {"tas", "air_temperature", "K"},
    {"t#", "air_temperature", "K"},
    {"u10", "eastward_wind", "m s-1"},
    {"10u", "eastward_wind", "m s-1"},
    {"u#", "eastward_wind", "m s-1"},
    {"v10", "northward_wind", "m s-1"},
    {"10v", "northward_wind", "m s-1"},
    {"v#", "northward_wind", "m s-1"},
    {"z#", "geopotential", "m2 s-2"},
    {"z#", "geopotential", "m**2 s**-2"},
    {"zg#", "geopotential_height", "m"},
    {"q#", "specific_humidity", "kg kg-1"},
    {"q#", "specific_humidity", "1"},
    {"hus#", "specific_humidity", "1"},
    {"r#", "relative_humidity", "%"},
    {"w#", "lagrangian_tendency_of_air_pressure", "Pa s-1"},
    {"msl", "air_pressure_at_mean_sea_level", "Pa"},
    {"mslp", "air_pressure_at_mean_sea_level", "Pa"},
    {"psl", "air_pressure_at_mean_sea_level", "Pa"},
    {"sp", "surface_air_pressure", "Pa"},
    {"tcwv", "atmosphere_mass_content_of_water_vapor", "kg m-2"},
    {"sst", "sea_surface_temperature", "K"},
    {"tos", "sea_surface_temperature", "degC"},
    {"zos", "sea_surface_height_above_geoid", "m"},
}};

std::string_view standard_name_of(std::string_view channel, std::string_view unit) {
  const auto level = std::ranges::find_if(channel, [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
  const std::string_view quantity = channel.substr(0, static_cast<size_t>(level - channel.begin()));
  const bool has_level = !quantity.empty() && std::all_of(level, channel.end(), [](char c) { return c >= '0' && c <= '9'; });
  for (const StandardName& row : kStandardNames) {
    const bool same = row.channel == channel || (has_level && level != channel.end() && row.channel.ends_with('#') &&
                                                 row.channel.substr(0, row.channel.size() - 1) == quantity);
    if (same && row.unit == unit) return row.name;
  }
  return {};
}

// Writes a unit as UDUNITS reads it: ERA5's "m**2 s**-2" is "m2 s-2".
std::string cf_unit(std::string unit) {
  for (size_t at = unit.find("**"); at != std::string::npos; at = unit.find("**")) unit.erase(at, 2);
  return unit;
}

std::vector<double> hours(const std::vector<int64_t>& seconds) {
  std::vector<double> values;
  for (const int64_t time : seconds) values.push_back(static_cast<double>(time) / kHour);
  return values;
}

std::vector<double> places_or(const std::vector<double>& given, int64_t count, double first, double step) {
  std::vector<double> places = given;
  for (int64_t i = 0; given.empty() && i < count; ++i) places.push_back(first + step * static_cast<double>(i));
  return places;
}

void add_places(const ForecastLayout& layout, OutputFile& output) {
  const auto rows = static_cast<double>(std::max<int64_t>(1, layout.height - 1)), columns = static_cast<double>(layout.width);
  Attributes north = latitude_attributes(), east = longitude_attributes();
  if (layout.latitude.empty()) north["comment"] = text_attribute("assumed: equally spaced from pole to pole");
  if (layout.longitude.empty()) east["comment"] = text_attribute("assumed: equally spaced from 0 eastwards");
  add_coordinate(output, "latitude", places_or(layout.latitude, layout.height, 90.0, -180.0 / rows), std::move(north));
  add_coordinate(output, "longitude", places_or(layout.longitude, layout.width, 0.0, 360.0 / columns), std::move(east));
}

void add_times(const ForecastLayout& layout, OutputFile& output) {
  const auto calendar = text_attribute(std::string(name_of(layout.calendar)));
  add_coordinate(output, "init_time", hours(layout.starts),
                 {{"standard_name", text_attribute("forecast_reference_time")},
                  {"long_name", text_attribute("start of the forecast")},
                  {"units", text_attribute(kTimeUnits)},
                  {"calendar", calendar},
                  {"axis", text_attribute("T")}});
  const bool in_hours = layout.leads.in_hours;
  Attributes attributes{{"long_name", text_attribute(in_hours ? "time since the start" : "steps since the start")},
                        {"units", text_attribute(in_hours ? "hours" : "1")}};
  if (in_hours) attributes["standard_name"] = text_attribute("forecast_period");
  add_coordinate(output, "lead_time", layout.leads.numbers, std::move(attributes));
  OutputArray valid{.name = "valid_time",
                    .shape = {layout.num_leads(), static_cast<int64_t>(layout.starts.size())},
                    .chunk = {layout.num_leads(), static_cast<int64_t>(layout.starts.size())},
                    .dtype = Dtype::F64,
                    .codecs = {},
                    .axes = {"lead_time", "init_time"},
                    .attributes = {{"standard_name", text_attribute("time")},
                                   {"long_name", text_attribute("time that the field is of")},
                                   {"units", text_attribute(kTimeUnits)},
                                   {"calendar", calendar}}};
  output.arrays.push_back(std::move(valid));
}

void add_members(const ForecastLayout& layout, OutputFile& output) {
  if (layout.members == 1) return;
  std::vector<double> numbers = layout.member_numbers;
  for (int64_t member = 0; layout.member_numbers.empty() && member < layout.members; ++member)
    numbers.push_back(static_cast<double>(member));
  add_coordinate(output, "number", std::move(numbers),
                 {{"standard_name", text_attribute("realization")},
                  {"long_name", text_attribute("member of the ensemble")},
                  {"units", text_attribute("1")}},
                 Dtype::I32);
}

Attributes channel_attributes(const ForecastLayout& layout, size_t channel) {
  const std::string& name = layout.channels[channel];
  const std::string unit = cf_unit(channel < layout.units.size() ? layout.units[channel] : "");
  Attributes attributes{{"long_name", text_attribute(name)}, {"coordinates", text_attribute("valid_time")}};
  if (!unit.empty()) attributes["units"] = text_attribute(unit);
  if (const auto known = standard_name_of(name, unit); !known.empty())
    attributes["standard_name"] = text_attribute(std::string(known));
  return attributes;
}

}  // namespace

std::vector<std::string> variable_names(const std::vector<std::string>& channels) {
  std::vector<std::string> names, taken = {"time", "init_time", "lead_time", "number", "valid_time", "latitude", "longitude"};
  for (const std::string& channel : channels) {
    std::string name;
    for (const char c : channel) {
      const auto byte = static_cast<unsigned char>(c);
      name.push_back(byte < 128 && std::isalnum(byte) != 0 ? c : '_');
    }
    if (name.empty() || std::isalpha(static_cast<unsigned char>(name.front())) == 0) name = cat("v", name);
    while (std::ranges::find(taken, name) != taken.end()) name.push_back('_');
    taken.push_back(name);
    names.push_back(std::move(name));
  }
  return names;
}

bool is_unit_of(const std::string& written, const std::string& unit) {
  return may_be_same_unit(written, unit) || may_be_same_unit(cf_unit(written), cf_unit(unit));
}

OutputFile forecast_output(const ForecastLayout& layout) {
  OutputFile output;
  output.attributes = layout.attributes;
  output.attributes["Conventions"] = text_attribute("CF-1.10");
  const auto names = variable_names(layout.channels);
  Extents shape, chunk;
  std::vector<std::string> axes;
  if (layout.members > 1) shape.push_back(layout.members), chunk.push_back(1), axes.emplace_back("number");
  shape.insert(shape.end(), {layout.num_leads(), static_cast<int64_t>(layout.starts.size()), layout.height, layout.width});
  chunk.insert(chunk.end(), {1, 1, layout.height, layout.width});
  axes.insert(axes.end(), {"lead_time", "init_time", "latitude", "longitude"});
  for (size_t channel = 0; channel < names.size(); ++channel) {
    output.arrays.push_back({.name = names[channel],
                             .shape = shape,
                             .chunk = chunk,
                             .dtype = Dtype::F32,
                             .codecs = {},
                             .axes = axes,
                             .attributes = channel_attributes(layout, channel),
                             .nan_is_missing = true});
  }
  add_times(layout, output);
  add_members(layout, output);
  add_places(layout, output);
  return output;
}

std::vector<double> valid_time_values(const ForecastLayout& layout) {
  std::vector<double> values;
  for (size_t lead = 0; lead < static_cast<size_t>(layout.num_leads()); ++lead) {
    for (const auto& times : layout.valid_times) values.push_back(static_cast<double>(times[lead]) / kHour);
  }
  return values;
}

ArrayRegion field_region(const ForecastLayout& layout, int64_t start, int64_t member, int64_t lead) {
  ArrayRegion region{.begin = {}, .end = {}};
  if (layout.members > 1) region.begin.push_back(member), region.end.push_back(member + 1);
  region.begin.insert(region.begin.end(), {lead, start, 0, 0});
  region.end.insert(region.end.end(), {lead + 1, start + 1, layout.height, layout.width});
  return region;
}

}  // namespace welkin::data
