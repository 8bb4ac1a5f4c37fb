// SPDX-License-Identifier: Apache-2.0
#include "data/simulate/globe/atmosphere.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"
#include "core/philox.h"
#include "core/text.h"
#include "data/simulate/globe/weather_channels.h"

namespace welkin::data::simulate {
namespace {

constexpr double kUpperDepth = 6800.0, kLowerDepth = 3800.0;
constexpr double kSixHours = 21600.0;

}  // namespace

ShallowWaterOptions atmosphere_options(int64_t truncation) {
  // 2700 s at truncation 21: the fastest wind passes a tenth of the shortest wave.
  const double steps = std::ceil(kSixHours / (2700.0 * std::min(1.0, 21.0 / static_cast<double>(truncation))));
  return {.truncation = truncation,
          .layers = 2,
          .tracers = 2,
          .density_ratio = 0.74,
          .mean_depth = {kUpperDepth, kLowerDepth},
          .step_s = kSixHours / steps,
          .diffusion_s = 12.0 * 3600.0 * 21.0 / static_cast<double>(truncation),
          .drag_s = 8.0 * 86400.0,
          .filter = 0.1};
}

Atmosphere::Atmosphere(int64_t truncation, const Planet& planet, uint64_t key, double second)
    : water_(atmosphere_options(truncation)), planet_(planet), climate_(water_.transform(), planet), second_(second) {
  water_.set_ground(planet.ground);
  climate_.set_time(std::fmod(second + kSecondsPerYear, kSecondsPerYear));
  climate_.start();
  start(key);
}

// The lower layer rests under a constant pressure; the interface has its radiative height, and the upper wind balances its slope.
void Atmosphere::start(uint64_t key) {
  const SphereTransform& sphere = water_.transform();
  const ShallowWaterOptions& o = water_.options();
  const double r = o.density_ratio, reduced = o.gravity * (1.0 - r);
  const Bundle bundle{.scalars = 4, .vectors = 1};
  ModeValues modes(static_cast<size_t>(sphere.modes().count() * bundle.columns()));
  std::vector<double> points;
  for (int64_t pair = 0; pair < sphere.pairs(); ++pair) {
    points.assign(static_cast<size_t>(2 * sphere.width() * bundle.columns()), 0.0);
    for (int64_t place = 0; place < 2 * sphere.width(); ++place) {
      const double sine = (place % 2 == 0 ? 1.0 : -1.0) * sphere.rows().sine[static_cast<size_t>(pair)];
      const double cosine = sphere.rows().cosine[static_cast<size_t>(pair)];
      const double surface = kLowerDepth + climate_.interface_height(sine);
      constexpr double kStep = 1e-4;
      const double slope =
          (climate_.interface_height(sine + kStep) - climate_.interface_height(sine - kStep)) / (2.0 * kStep) * cosine / o.radius;
      const double coriolis = 2.0 * o.rotation * sine, least = 2.0e-5;
      double* x = points.data() + place * bundle.columns();
      x[0] = (r * kUpperDepth + kLowerDepth - surface) / r;
      x[1] = surface;
      x[2] = climate_.mean_surface_temperature(sine);
      x[3] = 0.7 * saturation_humidity(x[2], 1e5);
      // f u = -dM/dy with M = reduced gravity times the upper depth; regular at the equator.
      x[4] = reduced / r * slope * coriolis / (coriolis * coriolis + least * least);
    }
    sphere.add_to_modes(pair, bundle, points, modes);
  }
  int64_t mode = 0;
  for (int64_t m = 0; m <= o.truncation; ++m) {
    for (int64_t n = m; n <= o.truncation; ++n, ++mode) {
      const std::complex<double>* from = modes.data() + mode * bundle.columns();
      std::complex<double>* to = water_.state().data() + mode * water_.columns();
      to[0] = from[4] / o.radius;
      to[2] = from[0];
      to[5] = from[1] - planet_.ground[static_cast<size_t>(mode)];
      to[6] = from[2];
      to[7] = from[3];
      if (m < 1 || n < 3 || n > 12) continue;
      const PhiloxBlock block = philox(key, static_cast<uint64_t>(m), static_cast<uint64_t>(n));
      const auto upper = normal_pair(block[0], block[1]), lower = normal_pair(block[2], block[3]);
      to[0] += 1.5e-6 * std::complex<double>(upper[0], upper[1]);
      to[3] += 1.0e-6 * std::complex<double>(lower[0], lower[1]);
    }
  }
  water_.restart();
}

void Atmosphere::advance_six_hours() {
  const double step = water_.options().step_s;
  const auto steps = static_cast<int64_t>(std::llround(kSixHours / step));
  for (int64_t i = 0; i < steps; ++i) {
    climate_.set_time(std::fmod(second_ + static_cast<double>(i) * step + kSecondsPerYear, kSecondsPerYear));
    water_.step(&climate_);
    climate_.advance_surface(step);
  }
  second_ += kSixHours;
  // Depths bound everything else: when one is no number, or negative on average, the flow has broken down.
  const double least = std::min(water_.mean_depth(0), water_.mean_depth(1));
  if (!(least > 0.0) || !std::isfinite(std::abs(water_.state()[2 * static_cast<size_t>(water_.columns()) + 2]))) {
    throw DataError("simulate weather",
                    cat("the flow became unstable: day=", second_ / 86400.0, ", truncation=", water_.options().truncation),
                    "Take another --truncation or --seed, and report this");
  }
}

void Atmosphere::channels(const SphereTransform& output, std::span<float> fields) const {
  const Bundle bundle = diagnosis_bundle();
  const int64_t columns = bundle.columns();
  ModeValues modes(static_cast<size_t>(output.modes().count() * columns));
  const ModeValues surface = climate_.surface_temperature();
  for (int64_t mode = 0; mode < output.modes().count(); ++mode) {
    const auto i = static_cast<size_t>(mode);
    const std::complex<double>* from = water_.state().data() + mode * water_.columns();
    std::complex<double>* to = modes.data() + mode * columns;
    to[0] = from[2], to[1] = from[5], to[2] = from[6], to[3] = from[7];
    to[4] = surface[i], to[5] = planet_.ground[i], to[6] = planet_.land[i];
  }
  for (int64_t layer : {0, 1}) water_.wind_potentials(water_.state(), layer, bundle.scalars + 2 * layer, columns, modes);
  const int64_t height = output.height(), width = output.width();
  const Diagnosis diagnosis(water_.options());
  std::vector<double> points;
  for (int64_t pair = 0; pair < output.pairs(); ++pair) {
    output.to_points(pair, bundle, modes, points);
    for (int64_t side : {0, 1}) {
      const int64_t row = side == 0 ? pair : height - 1 - pair;
      const double sine = output.rows().sine[static_cast<size_t>(row)];
      for (int64_t lon = 0; lon < width; ++lon) {
        diagnosis.channels(points.data() + (2 * lon + side) * columns, sine, fields.data() + row * width + lon, height * width);
      }
    }
  }
}

}  // namespace welkin::data::simulate
