// SPDX-License-Identifier: Apache-2.0
#include "data/simulate/globe/climate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace welkin::data::simulate {
namespace {

constexpr double kDay = 86400.0;
constexpr double kSolar = 1361.0;      // W/m2
constexpr double kAbsorbed = 0.70;     // one minus the planetary albedo in the tropics
constexpr double kPolarAlbedo = 0.40;  // the share of it that low sun, snow and cloud take away at the poles
constexpr double kEmitted = 180.0;     // W/m2 at 0 degrees Celsius, and its increase per kelvin: heat carried by the air that
constexpr double kEmittedSlope = 4.0;  // has no equation of its own makes the increase larger than that of radiation alone
constexpr double kExchange = 12.0;     // W/m2/K between surface and air
constexpr double kSeaHeat = 1.5e8;     // J/m2/K: 36 m of water
constexpr double kLandHeat = 1.5e6;    // J/m2/K: a metre of soil
constexpr double kFreezing = 273.15;

constexpr double kInterfaceSpan = 4400.0;                                       // m from the tropics to the poles
constexpr double kFrontWidth = 10.0, kFrontLatitude = 42.0, kFrontShift = 5.0;  // degrees
constexpr double kWinter = 0.15;                                                // how much steeper winter is than the yearly mean
constexpr double kSurfaceLift = 15.0;                                           // m of interface per kelvin of the surface
constexpr double kInterfaceTime = 10.0 * kDay;
constexpr double kAirTime = 4.0 * kDay, kEvaporationTime = 2.0 * kDay, kRainTime = 3.0 * 3600.0;
constexpr double kSurfacePressure = 1e5;

// Sine of the season, 1 at the northern midsummer; `lag_days` after the sun.
double season(double second, double lag_days) {
  return std::sin(2.0 * std::numbers::pi * (second / kDay - 80.0 - lag_days) / 365.25);
}

// Share of sunlight that a latitude keeps.
double absorbed(double sine_latitude) { return kAbsorbed * (1.0 - kPolarAlbedo * std::pow(sine_latitude, 4)); }

}  // namespace

double saturation_humidity(double temperature, double pressure) {
  const double celsius = std::clamp(temperature - kFreezing, -100.0, 60.0);
  const double vapour = 611.2 * std::exp(17.67 * celsius / (celsius + 243.5));
  return 0.622 * vapour / std::max(pressure - 0.378 * vapour, 1.0);
}

Sun::Sun(double second) {
  const double declination = 23.44 * std::numbers::pi / 180.0 * season(second, 0.0);
  sine_declination = std::sin(declination);
  cosine_declination = std::cos(declination);
  hour = 2.0 * std::numbers::pi * (std::fmod(second, kDay) / kDay - 0.5);
}

double Sun::height(double sine_latitude, double cosine_latitude, double longitude) const {
  return std::max(0.0, sine_latitude * sine_declination + cosine_latitude * cosine_declination * std::cos(hour + longitude));
}

Climate::Climate(const SphereTransform& sphere, const Planet& planet)
    : sphere_(sphere), places_(static_cast<size_t>(sphere.pairs() * sphere.width() * 2)) {
  const Bundle one{.scalars = 1, .vectors = 0};
  std::vector<double> land, ground;
  for (int64_t pair = 0; pair < sphere.pairs(); ++pair) {
    sphere.to_points(pair, one, planet.land, land);
    sphere.to_points(pair, one, planet.ground, ground);
    for (size_t i = 0; i < land.size(); ++i) {
      Place& here = places_[static_cast<size_t>(pair * sphere.width() * 2) + i];
      here.land = std::clamp(land[i], 0.0, 1.0);
      here.ground = std::max(ground[i], 0.0);
      here.heat = kSeaHeat * std::pow(kLandHeat / kSeaHeat, here.land);
    }
    const double sine = sphere.rows().sine[static_cast<size_t>(pair)], cosine = sphere.rows().cosine[static_cast<size_t>(pair)];
    for (const double side : {1.0, -1.0}) {
      rows_.push_back({.sine = side * sine,
                       .cosine = cosine,
                       .mean_surface = mean_surface_temperature(side * sine),
                       .absorbed = absorbed(sine),
                       .interface = 0.0});
    }
  }
  set_time(0.0);
  start();
}

void Climate::set_time(double second) {
  second_ = second;
  for (Row& row : rows_) row.interface = interface_height(row.sine);
}

double Climate::mean_surface_temperature(double sine_latitude) const {
  // Yearly mean sunlight to second order in sin(latitude) (North 1975).
  const double share = 1.0 - 0.477 * 0.5 * (3.0 * sine_latitude * sine_latitude - 1.0);
  return kFreezing + (0.25 * kSolar * absorbed(sine_latitude) * share - kEmitted) / kEmittedSlope;
}

double Climate::interface_height(double sine_latitude) const {
  const double latitude = std::abs(std::asin(std::clamp(sine_latitude, -1.0, 1.0))) * 180.0 / std::numbers::pi;
  const double summer = (sine_latitude < 0.0 ? -1.0 : 1.0) * season(second_, 25.0);
  // The tropics are common to both hemispheres: only the polar side deepens in winter.
  const double front = 0.375 * (1.0 + std::tanh((latitude - kFrontLatitude - kFrontShift * summer) / kFrontWidth)) +
                       0.25 * sine_latitude * sine_latitude;
  return kInterfaceSpan * ((1.0 - kWinter * summer) * front - 0.32);
}

void Climate::start() {
  for (int64_t pair = 0; pair < sphere_.pairs(); ++pair) {
    for (int64_t i = 0; i < 2 * sphere_.width(); ++i) {
      Place& here = place(pair, i / 2, i % 2);
      here.air = row(pair, i % 2).mean_surface;
      here.surface = here.air - kLapse * here.ground;
    }
  }
}

void Climate::at_point(int64_t pair, int64_t lon, int side, const double* tracer, double* source, double* target) {
  Place& here = place(pair, lon, side);
  const Row& zone = row(pair, side);
  here.air = tracer[kAirTemperature];
  const double at_sea_level = here.surface + kLapse * here.ground;
  const double warm = std::clamp(at_sea_level - zone.mean_surface, -20.0, 20.0);
  const double humidity = tracer[kHumidity], limit = saturation_humidity(here.air, kSurfacePressure);
  source[kAirTemperature] = 0.0;
  source[kHumidity] = -std::max(0.0, humidity - limit) / kRainTime;
  target[0] = zone.interface - kSurfaceLift * warm;
  target[1 + kAirTemperature] = at_sea_level;
  target[1 + kHumidity] = (0.85 - 0.35 * here.land) * saturation_humidity(here.surface, kSurfacePressure);
}

void Climate::advance_surface(double step_s) {
  const Sun sun(second_);
  const double per_radian = 2.0 * std::numbers::pi / static_cast<double>(sphere_.width());
  for (int64_t pair = 0; pair < sphere_.pairs(); ++pair) {
    for (int64_t i = 0; i < 2 * sphere_.width(); ++i) {
      Place& here = place(pair, i / 2, i % 2);
      const Row& zone = row(pair, i % 2);
      const double light = sun.height(zone.sine, zone.cosine, per_radian * static_cast<double>(i / 2));
      const double gain =
          kSolar * zone.absorbed * light - kEmitted + kEmittedSlope * kFreezing + kExchange * (here.air - kLapse * here.ground);
      // Implicit: land answers faster than some steps are long.
      here.surface = (here.surface + step_s / here.heat * gain) / (1.0 + step_s / here.heat * (kEmittedSlope + kExchange));
    }
  }
}

double Climate::interface_rate() const { return 1.0 / kInterfaceTime; }

double Climate::tracer_rate(int64_t tracer) const { return tracer == kAirTemperature ? 1.0 / kAirTime : 1.0 / kEvaporationTime; }

ModeValues Climate::surface_temperature() const {
  ModeValues modes(static_cast<size_t>(sphere_.modes().count()));
  std::vector<double> points(static_cast<size_t>(2 * sphere_.width()));
  for (int64_t pair = 0; pair < sphere_.pairs(); ++pair) {
    for (size_t i = 0; i < points.size(); ++i) points[i] = places_[static_cast<size_t>(pair * 2 * sphere_.width()) + i].surface;
    sphere_.add_to_modes(pair, {.scalars = 1, .vectors = 0}, points, modes);
  }
  return modes;
}

}  // namespace welkin::data::simulate
