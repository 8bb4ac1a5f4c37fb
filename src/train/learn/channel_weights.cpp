// SPDX-License-Identifier: Apache-2.0
#include "train/learn/channel_weights.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string_view>

#include "config/draft/channel_settings.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::train {
namespace {

// Names of ERA5, of makani and of WeatherBench2.
constexpr std::array<std::string_view, 5> kTemperatures{"t2m", "2t", "2d", "d2m", "2m_temperature"};
constexpr std::array<std::string_view, 31> kSurface{"u10",
                                                    "v10",
                                                    "10u",
                                                    "10v",
                                                    "u10m",
                                                    "v10m",
                                                    "10m_u_component_of_wind",
                                                    "10m_v_component_of_wind",
                                                    "100u",
                                                    "100v",
                                                    "u100m",
                                                    "v100m",
                                                    "100m_u_component_of_wind",
                                                    "100m_v_component_of_wind",
                                                    "sp",
                                                    "surface_pressure",
                                                    "msl",
                                                    "mslp",
                                                    "mean_sea_level_pressure",
                                                    "tp",
                                                    "tp06",
                                                    "tp6h",
                                                    "tp12",
                                                    "tp24",
                                                    "total_precipitation",
                                                    "total_precipitation_6hr",
                                                    "total_precipitation_12hr",
                                                    "total_precipitation_24hr",
                                                    "tcwv",
                                                    "sst",
                                                    "sea_surface_temperature"};
// Layers of the soil, whose numbers are no pressures.
constexpr std::array<std::string_view, 4> kSoil{"swvl", "stl", "volumetric_soil_water_layer", "soil_temperature_level"};

bool is_one_of(const std::string& channel, const auto& names) { return std::ranges::find(names, channel) != names.end(); }

// ERA5 calls the wind at 100 m u100, others the wind at 100 hPa: beside other levels of its kind it is the latter.
bool is_near_ground(const std::string& channel, const std::vector<std::string>& channels) {
  if (is_one_of(channel, kSurface)) return true;
  if (channel != "u100" && channel != "v100") return false;
  return std::ranges::none_of(channels, [&](const std::string& other) {
    const auto leveled = leveled_name(other);
    return other != channel && leveled && leveled->variable == channel.substr(0, 1);
  });
}

std::vector<double> makani_weights(const std::vector<std::string>& channels) {
  std::vector<double> weights;
  for (const std::string& channel : channels) {
    const auto leveled = leveled_name(channel);
    if (is_one_of(channel, kTemperatures)) {
      weights.push_back(1);
    } else if (is_near_ground(channel, channels)) {
      weights.push_back(0.1);
    } else {
      weights.push_back(leveled ? 0.001 * leveled->level : 0.01);
    }
  }
  return weights;
}

std::vector<double> graphcast_weights(const std::vector<std::string>& channels) {
  std::map<std::string, double> sums;
  for (const std::string& channel : channels) {
    const auto leveled = leveled_name(channel);
    if (leveled && !is_near_ground(channel, channels)) sums[leveled->variable] += leveled->level;
  }
  std::vector<double> weights;
  for (const std::string& channel : channels) {
    const auto leveled = leveled_name(channel);
    const bool is_surface = is_near_ground(channel, channels);
    weights.push_back(leveled && !is_surface ? leveled->level / sums[leveled->variable] : is_surface ? 0.1 : 1.0);
  }
  return weights;
}

std::vector<double> weights_of(config::LevelWeighting weighting, const std::vector<std::string>& channels) {
  switch (weighting) {
    case config::LevelWeighting::Makani:
      return makani_weights(channels);
    case config::LevelWeighting::GraphCast:
      return graphcast_weights(channels);
    case config::LevelWeighting::Equal:
      break;
  }
  return std::vector<double>(channels.size(), 1.0);
}

}  // namespace

std::optional<LeveledName> leveled_name(const std::string& channel) {
  if (is_one_of(channel, kSurface) || is_one_of(channel, kTemperatures)) return {};
  size_t digits = channel.size();
  while (digits > 0 && std::isdigit(static_cast<unsigned char>(channel[digits - 1])) != 0) --digits;
  const size_t count = channel.size() - digits;
  if (digits == 0 || count == 0 || count > 4) return {};
  const size_t letters = channel[digits - 1] == '_' ? digits - 1 : digits;
  if (is_one_of(channel.substr(0, letters), kSoil)) return {};
  const double level = std::stod(channel.substr(digits));
  if (letters == 0 || !(level > 0)) return {};
  return LeveledName{channel.substr(0, letters), level};
}

std::vector<double> channel_weights(const config::LossConfig& config, const std::vector<std::string>& channels) {
  std::vector<double> weights = weights_of(config.level_weighting, channels);
  const auto given = config::number_settings_of(config.channel_weights, "channel_weights", channels);
  double sum = 0;
  for (size_t c = 0; c < weights.size(); ++c) {
    weights[c] = given[c].value_or(weights[c]);
    if (weights[c] < 0) {
      throw ConfigError("loss", cat("a negative weight: key=channel_weights, channel=", channels[c], ", weight=", weights[c]),
                        "Give a weight of at least 0");
    }
    sum += weights[c];
  }
  if (!(sum > 0)) {
    throw ConfigError("loss", cat("no channel weighs anything: channels=", join(channels, " ")), "Give some a weight above 0");
  }
  if (std::ranges::all_of(weights, [](double weight) { return weight == 1; })) return {};
  return weights;
}

}  // namespace welkin::train
