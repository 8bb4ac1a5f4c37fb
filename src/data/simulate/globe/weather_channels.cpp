// SPDX-License-Identifier: Apache-2.0
#include "data/simulate/globe/weather_channels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "data/simulate/globe/atmosphere.h"
#include "data/simulate/globe/climate.h"

namespace welkin::data::simulate {
namespace {

constexpr double kGas = 287.0;                                       // J/kg/K
constexpr double kPressure = 101325.0;                               // Pa under the layers' mean depths
constexpr double kZ850 = 14300.0, kZ500 = 54500.0, kZ50 = 199000.0;  // mean geopotential, m2/s2
constexpr double kT500 = 253.0;                                      // mean temperature, K
constexpr double kWaterColumn = 2800.0;  // kg/m2 of air that carries the near-surface humidity: scale height 2.5 km

struct Wind {
  double u, v;
};

// Weakened, and turned towards low pressure (to the left in the north).
Wind rotated(double u, double v, double factor, double angle) {
  const double c = factor * std::cos(angle), s = factor * std::sin(angle);
  return {c * u - s * v, s * u + c * v};
}

double relative_humidity(double specific, double temperature, double pressure) {
  return std::clamp(100.0 * specific / saturation_humidity(temperature, pressure), 0.0, 100.0);
}

}  // namespace

std::vector<std::string> weather_channel_names() {
  return {"u10m", "v10m", "t2m",  "sp",   "msl",  "t850", "u1000", "v1000", "z1000", "u850",
          "v850", "z850", "u500", "v500", "z500", "t500", "z50",   "r500",  "r850",  "tcwv"};
}

std::vector<std::string> weather_channel_units() {
  return {"m s-1", "m s-1",  "K",     "Pa",    "Pa",     "K", "m s-1",  "m s-1", "m2 s-2", "m s-1",
          "m s-1", "m2 s-2", "m s-1", "m s-1", "m2 s-2", "K", "m2 s-2", "%",     "%",      "kg m-2"};
}

Diagnosis::Diagnosis(const ShallowWaterOptions& options)
    : gravity_(options.gravity), ratio_(options.density_ratio), upper_(options.mean_depth[0]), lower_(options.mean_depth[1]) {}

void Diagnosis::channels(const double* point, double sine_latitude, float* out, int64_t stride) const {
  const double upper = point[0], lower = point[1], air = point[2], surface = point[4], ground = point[5];
  const double humidity = std::max(point[3], 0.0), land = std::clamp(point[6], 0.0, 1.0);
  const double u1 = point[7], v1 = point[8], u2 = point[9], v2 = point[10];
  const double column = ratio_ * upper_ + lower_;
  const double high = gravity_ * (upper + lower + ground - upper_ - lower_);  // geopotential departures of the
  const double low = gravity_ * (ratio_ * upper + lower + ground - column);   // upper and the lower layer
  // Frictional turning of 15 degrees over sea and 25 over land, none at the equator.
  const double angle = (15.0 + 10.0 * land) * std::numbers::pi / 180.0 * std::tanh(6.0 * sine_latitude);
  const Wind near = rotated(u2, v2, 0.75 - 0.25 * land, angle), above = rotated(u2, v2, 0.85, 0.5 * angle);
  const double t500 = kT500 + (high - low) / (kGas * std::log(850.0 / 250.0));
  const double t850 = 0.7 * (air - kLapse * 1457.0) + 0.3 * (t500 + kLapse * 4100.0);
  const double z850 = kZ850 + low;
  const std::array<double, kWeatherChannels> values{near.u,
                                                    near.v,
                                                    0.5 * (air - kLapse * ground + surface),
                                                    kPressure * (ratio_ * upper + lower) / column,
                                                    kPressure * (ratio_ * upper + lower + ground) / column,
                                                    t850,
                                                    above.u,
                                                    above.v,
                                                    z850 - kGas * std::log(1000.0 / 850.0) * 0.5 * (air + t850),
                                                    u2,
                                                    v2,
                                                    z850,
                                                    0.5 * (u1 + u2),
                                                    0.5 * (v1 + v2),
                                                    kZ500 + 0.5 * (high + low),
                                                    t500,
                                                    kZ50 + high,
                                                    relative_humidity(0.1 * humidity, t500, 5e4),
                                                    relative_humidity(0.6 * humidity, t850, 8.5e4),
                                                    kWaterColumn * humidity};
  for (size_t c = 0; c < values.size(); ++c) out[static_cast<int64_t>(c) * stride] = static_cast<float>(values[c]);
}

}  // namespace welkin::data::simulate
