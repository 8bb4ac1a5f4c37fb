// SPDX-License-Identifier: Apache-2.0
// The shallow water model against theory: a steady flow, the dispersion of gravity and Rossby waves, and conserved quantities.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "core/philox.h"
#include "data/simulate/globe/shallow_water.h"
#include "number_close.h"

namespace welkin::data::simulate {
namespace {

using welkin::tests::rounds_to;
using welkin::tests::within;

using WaterMode = std::complex<double>;

WaterMode& water_mode(ShallowWater& model, int64_t m, int64_t n, int64_t column) {
  return model.state()[static_cast<size_t>(model.transform().modes().index(m, n) * model.columns() + column)];
}

// Frequency of a mode from its phase after `steps` steps, rad/s (modulo a turn, so the phase must stay small).
double phase_speed(ShallowWater& model, int64_t m, int64_t n, int64_t column, int steps) {
  const WaterMode before = water_mode(model, m, n, column);
  for (int i = 0; i < steps; ++i) model.step(nullptr);
  return std::arg(water_mode(model, m, n, column) / before) / (steps * model.options().step_s);
}

// Williamson et al. (1992), case 2: solid rotation u0 cos(lat) in balance with the depth.
TEST(SimulateShallowWater, BalancedRotationStaysAsItIs) {
  ShallowWaterOptions options{.truncation = 21, .mean_depth = {2.94e4 / 9.80616}, .step_s = 1200.0};
  ShallowWater model(options);
  const double speed = 2.0 * std::numbers::pi * options.radius / (12.0 * 86400.0);
  const double drop = (options.radius * options.rotation * speed + 0.5 * speed * speed) / options.gravity;  // h0 - drop sin^2
  water_mode(model, 0, 1, 0) = 2.0 * speed / options.radius * std::sqrt(2.0 / 3.0);
  // sin^2 = 1/3 + (2/3) P2; P_2^0 normalised = sqrt(5/2) P2.
  water_mode(model, 0, 0, 2) = std::sqrt(2.0) * (options.mean_depth[0] - drop / 3.0);
  water_mode(model, 0, 2, 2) = -drop * (2.0 / 3.0) * std::sqrt(2.0 / 5.0);
  const ModeValues before = model.state();
  for (int i = 0; i < 5 * 72; ++i) model.step(nullptr);
  double change = 0.0, size = 0.0;
  for (size_t i = 2; i < before.size(); i += 3) {
    if (i > 2) size += std::norm(before[i]);
    change += std::norm(model.state()[i] - before[i]);
  }
  EXPECT_LE(std::sqrt(change / size), worst_sum_bound(kFp64, 5 * 72 * 1000));
}

TEST(SimulateShallowWater, GravityWavesHaveTheirFrequency) {
  for (const int64_t n : {2, 5, 9}) {
    ShallowWaterOptions options{.truncation = 10, .rotation = 0.0, .mean_depth = {1000.0}, .step_s = 20.0, .filter = 0.0};
    ShallowWater model(options);
    water_mode(model, 0, 0, 2) = 1000.0 * std::sqrt(2.0);
    const double omega = std::sqrt(options.gravity * 1000.0 * static_cast<double>(n * (n + 1))) / options.radius;
    // One running wave: the divergence that belongs to h exp(-i omega t).
    water_mode(model, 2, n, 2) = 1e-3;
    water_mode(model, 2, n, 1) = WaterMode(0.0, 1.0) * omega * 1e-3 / 1000.0;
    EXPECT_TRUE(within(phase_speed(model, 2, n, 2, 200) / -omega, 1.0, {2e-4, "steps of 20 s: (omega dt)^2"})) << n;
  }
}

TEST(SimulateShallowWater, TwoLayersHaveAFastAndASlowWave) {
  const int64_t n = 6;
  const double r = 0.8, upper = 3000.0, lower = 5000.0, g = 9.80616;
  // Eigenvalues c^2 of [[g H1, g H2], [r g H1, g H2]]: equivalent depths of the two modes.
  const double trace = g * (upper + lower), determinant = g * g * upper * lower * (1.0 - r);
  for (const double sign : {1.0, -1.0}) {
    const double c2 = 0.5 * (trace + sign * std::sqrt(trace * trace - 4.0 * determinant));
    ShallowWaterOptions options{.truncation = 8,
                                .layers = 2,
                                .rotation = 0.0,
                                .gravity = g,
                                .density_ratio = r,
                                .mean_depth = {upper, lower},
                                .step_s = 20.0,
                                .filter = 0.0};
    ShallowWater model(options);
    water_mode(model, 0, 0, 2) = upper * std::sqrt(2.0);
    water_mode(model, 0, 0, 5) = lower * std::sqrt(2.0);
    const double omega = std::sqrt(c2 * static_cast<double>(n * (n + 1))) / options.radius;
    // Eigenvector of D: (g H1 - c2) D1 + g H2 D2 = 0; depths follow from continuity.
    const WaterMode first = 1e-9, second = first * (c2 - g * upper) / (g * lower);
    water_mode(model, 1, n, 1) = first;
    water_mode(model, 1, n, 4) = second;
    water_mode(model, 1, n, 2) = -upper * first / (WaterMode(0.0, -1.0) * omega);
    water_mode(model, 1, n, 5) = -lower * second / (WaterMode(0.0, -1.0) * omega);
    EXPECT_TRUE(within(phase_speed(model, 1, n, 1, 150) / -omega, 1.0, {5e-4, "steps of 20 s: (omega dt)^2"}))
        << "c=" << std::sqrt(c2);
  }
}

// Haurwitz (1940): on a very deep layer a small vorticity wave moves with omega = -2 Omega m / (n (n + 1)).
TEST(SimulateShallowWater, RossbyHaurwitzWavesHaveTheirFrequency) {
  for (const int64_t n : {4, 5, 8}) {
    ShallowWaterOptions options{.truncation = 12, .mean_depth = {1e7}, .step_s = 600.0};
    ShallowWater model(options);
    water_mode(model, 0, 0, 2) = 1e7 * std::sqrt(2.0);
    water_mode(model, 4, n, 0) = 1e-9;
    const double omega = -2.0 * options.rotation * 4.0 / static_cast<double>(n * (n + 1));
    EXPECT_TRUE(within(phase_speed(model, 4, n, 0, 72) / -omega, 1.0, {2e-3, "steps of 600 s, and a layer of finite depth"}))
        << n;
  }
}

// Free turbulent flow of two layers for five days: mass to rounding, energy and potential enstrophy within what the truncation
// loses.
TEST(SimulateShallowWater, MassEnergyAndEnstrophyAreConserved) {
  constexpr welkin::tests::Stated kTruncation{0.02, "what 21 waves lose of a turbulent flow in five days"};
  ShallowWaterOptions options{.truncation = 21, .layers = 2, .mean_depth = {5000.0, 5000.0}, .step_s = 600.0, .filter = 0.02};
  ShallowWater model(options);
  for (const int64_t layer : {0, 1}) water_mode(model, 0, 0, 3 * layer + 2) = 5000.0 * std::sqrt(2.0);
  for (int64_t m = 0; m <= 6; ++m) {
    for (int64_t n = std::max<int64_t>(m, 2); n <= 6; ++n) {
      const PhiloxBlock block = philox(3, static_cast<uint64_t>(m), static_cast<uint64_t>(n));
      const auto normal = normal_pair(block[0], block[1]);
      water_mode(model, m, n, 0) = 6e-6 * WaterMode(normal[0], m == 0 ? 0.0 : normal[1]);
    }
  }
  const double energy = model.energy(), enstrophy = model.potential_enstrophy(0);
  const double rest = 0.5 * options.gravity * (0.8 * 5000.0 * 5000.0 + 2.0 * 0.8 * 5000.0 * 5000.0 + 5000.0 * 5000.0);
  ASSERT_GT(energy - rest, 100.0 * 1e4);  // winds of tens of m/s over 10 km
  for (int i = 0; i < 5 * 144; ++i) model.step(nullptr);
  for (const int64_t layer : {0, 1}) EXPECT_TRUE(rounds_to(model.mean_depth(layer) / 5000.0, 1.0, 1, kFp64, 5 * 144)) << layer;
  EXPECT_TRUE(within((model.energy() - rest) / (energy - rest), 1.0, kTruncation));
  EXPECT_TRUE(within(model.potential_enstrophy(0) / enstrophy, 1.0, kTruncation));
}

TEST(SimulateShallowWater, WaterOverMountainsStaysAtRest) {
  ShallowWaterOptions options{
      .truncation = 15, .layers = 2, .mean_depth = {5000.0, 5000.0}, .step_s = 1800.0, .diffusion_s = 3600.0};
  ShallowWater model(options);
  ModeValues ground(static_cast<size_t>(model.transform().modes().count()));
  ground[static_cast<size_t>(model.transform().modes().index(3, 4))] = {400.0, 100.0};
  for (const int64_t layer : {0, 1}) water_mode(model, 0, 0, 3 * layer + 2) = 5000.0 * std::sqrt(2.0);
  water_mode(model, 3, 4, 5) = -ground[static_cast<size_t>(model.transform().modes().index(3, 4))];
  model.set_ground(ground);
  for (int i = 0; i < 100; ++i) model.step(nullptr);
  for (int64_t mode = 0; mode < model.transform().modes().count(); ++mode) {
    EXPECT_LT(std::abs(model.state()[static_cast<size_t>(mode * 6)]), 1e-15);
    EXPECT_LT(std::abs(model.state()[static_cast<size_t>(mode * 6 + 4)]), 1e-15);
  }
}

}  // namespace
}  // namespace welkin::data::simulate
