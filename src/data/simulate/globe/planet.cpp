// SPDX-License-Identifier: Apache-2.0
#include "data/simulate/globe/planet.h"

#include <algorithm>
#include <cmath>

#include "core/philox.h"

namespace welkin::data::simulate {
namespace {

constexpr double kShore = 0.35;      // of the random field's deviation: leaves about a third of the planet land
constexpr double kShoreWidth = 0.3;  // coasts are soft, so that few waves carry them
constexpr double kMountain = 550.0;  // m per deviation above the shore
constexpr double kHighest = 1300.0;  // m; the lower layer must not run dry over mountains

// Smooth random field of unit variance: waves 1 to 10, falling with degree.
ModeValues continents(const SphereTransform& sphere, uint64_t seed) {
  const Triangle& triangle = sphere.modes();
  ModeValues modes(static_cast<size_t>(triangle.count()));
  double power = 0.0;
  const int64_t top = std::min<int64_t>(10, triangle.truncation);
  for (int64_t m = 0; m <= top; ++m) {
    for (int64_t n = std::max<int64_t>(m, 1); n <= top; ++n) {
      const PhiloxBlock block =
          philox(stream_key(seed, "simulate/weather/planet"), static_cast<uint64_t>(m), static_cast<uint64_t>(n));
      const auto normal = normal_pair(block[0], block[1]);
      const double amplitude = 1.0 / std::pow(1.0 + static_cast<double>(n), 1.2);
      auto& mode = modes[static_cast<size_t>(triangle.index(m, n))];
      mode = {amplitude * normal[0], m == 0 ? 0.0 : amplitude * normal[1]};
      power += (m == 0 ? 0.5 : 1.0) * std::norm(mode);
    }
  }
  for (auto& mode : modes) mode /= std::sqrt(power);
  return modes;
}

}  // namespace

Planet make_planet(const SphereTransform& sphere, uint64_t seed) {
  const ModeValues shape = continents(sphere, seed);
  const Bundle one{.scalars = 1, .vectors = 0}, two{.scalars = 2, .vectors = 0};
  ModeValues both(static_cast<size_t>(2 * sphere.modes().count()));
  std::vector<double> points, surface;
  for (int64_t pair = 0; pair < sphere.pairs(); ++pair) {
    sphere.to_points(pair, one, shape, points);
    surface.assign(2 * points.size(), 0.0);
    for (size_t i = 0; i < points.size(); ++i) {
      const double above = points[i] - kShore;
      surface[2 * i] = std::clamp(kMountain * above, 0.0, kHighest);
      surface[2 * i + 1] = 0.5 * (1.0 + std::tanh(above / kShoreWidth));
    }
    sphere.add_to_modes(pair, two, surface, both);
  }
  Planet planet;
  for (size_t mode = 0; mode < shape.size(); ++mode) {
    planet.ground.push_back(both[2 * mode]);
    planet.land.push_back(both[2 * mode + 1]);
  }
  return planet;
}

}  // namespace welkin::data::simulate
