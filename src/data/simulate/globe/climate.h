// SPDX-License-Identifier: Apache-2.0
// Drives the two-layer atmosphere: sunlight of season and hour, a slab surface of land and sea, near-surface air temperature
// and humidity, and the slope of the interface between cold and warm air. docs/reference/simulate.md gives the formulas.
#pragma once

#include <cstdint>
#include <vector>

#include "data/simulate/globe/planet.h"
#include "data/simulate/globe/shallow_water.h"

namespace welkin::data::simulate {

inline constexpr int64_t kAirTemperature = 0;  // tracer: K, reduced to sea level
inline constexpr int64_t kHumidity = 1;        // tracer: kg/kg

inline constexpr double kLapse = 6.5e-3;  // temperature lapse rate of the standard atmosphere, K/m

inline constexpr double kSecondsPerYear = 365.25 * 86400.0;

// Saturation specific humidity over water (Bolton 1980), kg/kg; temperature in K, pressure in Pa.
double saturation_humidity(double temperature, double pressure);

// The sun at a time: `second` counts from January 1, 00:00 UTC; a year has 365.25 days.
struct Sun {
  explicit Sun(double second);
  // Cosine of the zenith angle, 0 at night; longitude in radians.
  double height(double sine_latitude, double cosine_latitude, double longitude) const;

  double sine_declination, cosine_declination;
  double hour;  // hour angle at longitude 0, rad
};

class Climate final : public WaterForcing {
 public:
  Climate(const SphereTransform& sphere, const Planet& planet);

  void set_time(double second);            // of the year; the targets that follow are of this time
  void start();                            // surface in the yearly mean of each latitude
  void advance_surface(double step_s);     // after the model's step, with the air that at_point saw
  ModeValues surface_temperature() const;  // one column of modes, K

  // Yearly mean of the surface temperature at rest, K, from which the model starts.
  double mean_surface_temperature(double sine_latitude) const;
  // Departure of the interface's radiative height from its mean, m, at the present time.
  double interface_height(double sine_latitude) const;

  void at_point(int64_t pair, int64_t lon, int side, const double* tracer, double* source, double* target) override;
  double interface_rate() const override;
  double tracer_rate(int64_t tracer) const override;

 private:
  struct Place {
    double land = 0.0, ground = 0.0;  // share, m
    double heat = 1.0;                // J/m2/K
    double surface = 288.0;           // K
    double air = 288.0;               // K, as seen last
  };
  Place& place(int64_t pair, int64_t lon, int64_t side) {
    return places_[static_cast<size_t>((pair * sphere_.width() + lon) * 2 + side)];
  }

  struct Row {
    double sine = 0.0, cosine = 1.0;
    double mean_surface = 288.0, absorbed = 0.7;  // K; share of the sunlight
    double interface = 0.0;                       // m, at the present time
  };
  Row& row(int64_t pair, int64_t side) { return rows_[static_cast<size_t>(2 * pair + side)]; }

  const SphereTransform& sphere_;
  std::vector<Place> places_;  // (pair, longitude, side)
  std::vector<Row> rows_;      // (pair, side)
  double second_ = 0.0;
};

}  // namespace welkin::data::simulate
