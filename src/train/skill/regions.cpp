// SPDX-License-Identifier: Apache-2.0
#include "train/skill/regions.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numbers>
#include <sstream>
#include <tuple>

#include "core/error.h"
#include "core/text.h"
#include "data/sample/row_cells.h"

namespace welkin::train {
namespace {

constexpr std::array<std::tuple<const char*, double, double>, 4> kNamedRegions{
    {{"global", -90.0, 90.0}, {"tropics", -20.0, 20.0}, {"nh", 20.0, 90.0}, {"sh", -90.0, -20.0}}};

[[noreturn]] void refuse_region(const std::string& word) {
  throw ConfigError("evaluate", cat("not a region: --regions ", word),
                    "Write global, tropics, nh, sh, or a box like europe=35:75:-12.5:42.5 (south, north, west, east)");
}

ScoreRegion parse_box(const std::string& word) {
  const size_t equals = word.find('=');
  ScoreRegion region{.name = word.substr(0, equals)};
  std::istringstream parts(word.substr(equals + 1));
  std::vector<double> numbers;
  for (std::string part; std::getline(parts, part, ':');) {
    const auto [rest, error] = std::from_chars(part.data(), part.data() + part.size(), numbers.emplace_back());
    if (error != std::errc() || rest != part.data() + part.size()) refuse_region(word);
  }
  if (numbers.size() != 4 || region.name.empty() || !(numbers[0] < numbers[1])) refuse_region(word);
  region.south = numbers[0], region.north = numbers[1], region.west = numbers[2], region.east = numbers[3];
  return region;
}

double radians(double degrees) { return degrees * std::numbers::pi / 180; }

std::vector<double> row_areas(const std::vector<double>& latitude) {
  const std::vector<double> borders = data::row_borders(latitude);
  std::vector<double> areas;
  for (size_t i = 0; i < latitude.size(); ++i) {
    areas.push_back(std::abs(std::sin(radians(borders[i + 1])) - std::sin(radians(borders[i]))));
  }
  return areas;
}

// Both borders belong to the region, as in WeatherBench2.
bool holds_longitude(const ScoreRegion& region, double degrees) {
  if (region.east - region.west >= 360) return true;
  const auto around = [](double value) { return value - 360 * std::floor(value / 360); };
  const double place = around(degrees), west = around(region.west), east = around(region.east);
  return west <= east ? place >= west && place <= east : place >= west || place <= east;
}

}  // namespace

std::vector<ScoreRegion> parse_regions(const std::string& text) {
  std::vector<ScoreRegion> regions;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    if (word.find('=') != std::string::npos) {
      regions.push_back(parse_box(word));
      continue;
    }
    const auto found = std::ranges::find_if(kNamedRegions, [&](const auto& row) { return word == std::get<0>(row); });
    if (found == kNamedRegions.end()) refuse_region(word);
    regions.push_back({.name = word, .south = std::get<1>(*found), .north = std::get<2>(*found)});
  }
  if (regions.empty()) refuse_region(text);
  for (size_t i = 0; i < regions.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (regions[i].name != regions[j].name) continue;
      throw ConfigError("evaluate", cat("two regions have one name: --regions ", text, ", name=", regions[i].name),
                        "Name each region once, and boxes differently");
    }
  }
  return regions;
}

std::vector<double> region_weights(const ScoreRegion& region, const std::vector<double>& latitude,
                                   const std::vector<double>& longitude) {
  const std::vector<double> areas = row_areas(latitude);
  std::vector<double> weights(latitude.size() * longitude.size(), 0.0);
  bool any = false;
  for (size_t row = 0; row < latitude.size(); ++row) {
    if (latitude[row] < region.south || latitude[row] > region.north) continue;
    for (size_t column = 0; column < longitude.size(); ++column) {
      if (!holds_longitude(region, longitude[column])) continue;
      weights[row * longitude.size() + column] = areas[row];
      any = any || areas[row] > 0;
    }
  }
  if (any) return weights;
  throw ConfigError("evaluate",
                    cat("no point of the grid lies in the region: region=", region.name, ", latitudes=", region.south, " to ",
                        region.north, ", longitudes=", region.west, " to ", region.east, ", grid=", latitude.front(), " to ",
                        latitude.back(), " and ", longitude.front(), " to ", longitude.back()),
                    "Leave it out, or move it onto the grid");
}

}  // namespace welkin::train
