// SPDX-License-Identifier: Apache-2.0
// Cosmology and particle-mesh gravity against closed forms: power spectrum, growth, plane waves, conservation.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <filesystem>
#include <numbers>
#include <vector>

#include "core/philox.h"
#include "data/simulate/universe/cloud_in_cell.h"
#include "data/simulate/universe/cosmology.h"
#include "data/simulate/universe/particle_mesh.h"
#include "number_close.h"

namespace welkin::data::simulate {
namespace {

// Integrals over the scale factor are sums of finite steps, rates are their slopes.
constexpr welkin::tests::Stated kIntegral{1e-9, "the quadrature of the growth integral"};
constexpr welkin::tests::Stated kSlope{1e-8, "the slope of that quadrature"};
constexpr welkin::tests::Stated kDifference{1e-6, "the difference over 2e-4 that it is compared with"};
using welkin::tests::rounds_to;
using welkin::tests::within;

TEST(SimulateCosmology, GrowsAsTheScaleFactorInMatterAlone) {
  const Cosmology matter{.omega_matter = 1.0};
  for (const double a : {0.02, 0.1, 0.5, 1.0}) {
    EXPECT_TRUE(within(matter.growth(a) / a, 1.0, kIntegral));
    EXPECT_TRUE(within(matter.growth_rate(a), 1.0, kSlope));
  }
  EXPECT_TRUE(within(matter.kick_factor(0.25, 1.0), 2.0 * (1.0 - 0.5), kIntegral));   // integral of a^-1/2
  EXPECT_TRUE(within(matter.drift_factor(0.25, 1.0), 2.0 * (2.0 - 1.0), kIntegral));  // integral of a^-3/2
}

TEST(SimulateCosmology, GrowthRateIsTheSlopeAndLateGrowthIsSlower) {
  const Cosmology cosmology;
  for (const double a : {0.1, 0.5, 0.9}) {
    EXPECT_TRUE(within(cosmology.growth_rate(a), (cosmology.growth(a + 1e-4) - cosmology.growth(a - 1e-4)) / 2e-4, kDifference));
  }
  // Carroll, Press & Turner (1992), good to 1 %: D(1) / a relative to matter alone.
  const double m = cosmology.omega_matter, l = 1.0 - m;
  const double fit = 2.5 * m / (std::pow(m, 4.0 / 7.0) - l + (1.0 + m / 2.0) * (1.0 + l / 70.0));
  EXPECT_TRUE(within(0.01 / cosmology.growth(0.01) / fit, 1.0, {0.01, "what the authors say of their fit"}));
}

TEST(SimulateCosmology, PowerHasSigma8AndTheTiltOfLargeScales) {
  const Cosmology cosmology;
  const LinearPower power(cosmology);
  EXPECT_TRUE(within(power.sigma(8.0), cosmology.sigma8, {1e-6, "the quadrature over wavenumbers"}));
  EXPECT_TRUE(within(std::log(power(2e-5) / power(1e-5)) / std::log(2.0), cosmology.spectral_index,
                     {2e-3, "the transfer function bends a little even there"}));
  // At k = 1 h/Mpc the spectrum falls nearly as k^-2.5 in any universe like this one.
  const double slope = std::log(power(1.1) / power(1.0)) / std::log(1.1);
  EXPECT_GT(slope, -2.6);
  EXPECT_LT(slope, -2.2);
}

TEST(SimulateModes, AreRealFieldsOfUnitVarianceWhateverTheMesh) {
  double sum = 0.0;
  int64_t count = 0;
  for (int64_t a = -6; a <= 6; ++a) {
    for (int64_t b = -6; b <= 6; ++b) {
      for (int64_t c = -6; c <= 6; ++c) {
        if (a == 0 && b == 0 && c == 0) continue;
        EXPECT_EQ(white_mode(9, a, b, c), std::conj(white_mode(9, -a, -b, -c)));
        sum += std::norm(white_mode(9, a, b, c));
        ++count;
      }
    }
  }
  EXPECT_TRUE(
      within(sum / static_cast<double>(count), 1.0, {5 / std::sqrt(count / 2), "five standard errors of the free modes"}));
  const InitialField coarse{.power = LinearPower(Cosmology{}), .key = 3, .edge = 32, .box_mpc_h = 50.0};
  InitialField fine = coarse;
  fine.edge = 64;
  EXPECT_EQ(coarse.density(3, -2, 7), fine.density(3, -2, 7));
  EXPECT_NE(coarse.density(3, -2, 7), coarse.density(3, -2, 6));
  EXPECT_EQ(coarse.density(16, 0, 0), 0.0);
}

TEST(SimulateModes, DisplacementHasTheDensityAsMinusItsDivergence) {
  const InitialField field{.power = LinearPower(Cosmology{}), .key = 3, .edge = 32, .box_mpc_h = 50.0};
  const double wave = 2.0 * std::numbers::pi / 32.0;
  std::complex<double> divergence = 0.0;
  const std::array<int64_t, 3> k{3, -2, 7};
  for (int axis = 0; axis < 3; ++axis) {
    const auto i = static_cast<size_t>(axis);
    divergence += std::complex<double>(0.0, wave * static_cast<double>(k[i])) *
                  displacement_mode(field.density(k[0], k[1], k[2]), k, i, field.edge);
  }
  EXPECT_TRUE(rounds_to(std::abs(divergence + field.density(k[0], k[1], k[2])), 0.0, std::abs(divergence), kFp64, 32));
}

// A scattered box: displacements of several cells in every direction.
ParticleMesh::Filler scattered() {
  return [](int64_t z, int64_t y, int64_t x, float* place, float* momentum) {
    const PhiloxBlock block = philox(1, static_cast<uint64_t>(z), static_cast<uint64_t>(y * 1000 + x));
    for (size_t axis = 0; axis < 3; ++axis) {
      place[axis] = 10.0f * (unit_float(block[axis]) - 0.5f);
      momentum[axis] = unit_float(block[3]) - 0.5f;
    }
  };
}

TEST(SimulateGravity, CloudInCellKeepsMassExactlyInAnySlabs) {
  const int64_t n = 16;
  ThreadPool pool({.num_threads = 2});
  ParticleMesh box({.edge = n}, pool);
  box.start(scattered(), 1.0);
  std::vector<int64_t> whole(static_cast<size_t>(n * n * n)), slabs(whole.size());
  box.deposit_mass(0, n, whole.data());
  for (int64_t first = 0; first < n; first += 4) box.deposit_mass(first, 4, slabs.data() + first * n * n);
  EXPECT_EQ(whole, slabs);
  __int128 mass = 0;
  for (const int64_t cell : whole) mass += cell;
  EXPECT_TRUE(mass == static_cast<__int128>(n * n * n) * kCloudUnit);
}

std::array<double, 3> total_momentum(const ParticleMesh& box) {
  const int64_t n = box.options().edge, area = n * n;
  std::array<double, 3> sum{};
  std::vector<float> plane(static_cast<size_t>(3 * area));
  for (int64_t z = 0; z < n; ++z) {
    box.momentum().read(z, 0, 3 * area, plane.data());
    for (int64_t i = 0; i < 3 * area; ++i) sum[static_cast<size_t>(i / area)] += plane[static_cast<size_t>(i)];
  }
  return sum;
}

TEST(SimulateGravity, MomentumIsConserved) {
  const int64_t n = 16;
  ThreadPool pool({.num_threads = 1});
  ParticleMesh box({.edge = n}, pool);
  box.start(scattered(), 0.5);
  const auto before = total_momentum(box);
  box.evolve(1.0, 8);
  const auto after = total_momentum(box);
  std::vector<float> plane(static_cast<size_t>(n * n));
  box.momentum().read(0, 0, n * n, plane.data());
  for (size_t axis = 0; axis < 3; ++axis)
    EXPECT_TRUE(rounds_to(after[axis] - before[axis], 0.0, static_cast<double>(n * n * n), kFp32, 8 * 4)) << axis;
}

// One wave along an axis, psi = amplitude sin(k q): before crossing, Zel'dovich's solution is exact.
void start_plane_wave(ParticleMesh& box, double amplitude, double a, int64_t waves) {
  const Cosmology& c = box.options().cosmology;
  const auto n = static_cast<double>(box.options().edge);
  const double growth = c.growth(a), speed = a * a * a * c.expansion(a) * c.growth_rate(a);
  box.start(
      [&](int64_t, int64_t y, int64_t, float* place, float* momentum) {
        const double psi = amplitude * std::sin(2.0 * std::numbers::pi * static_cast<double>(waves * y) / n);
        place[1] = static_cast<float>(growth * psi);
        momentum[1] = static_cast<float>(speed * psi);
      },
      a);
}

TEST(SimulateGravity, APlaneWaveFollowsZeldovichUntilItCrosses) {
  const int64_t n = 32;
  ThreadPool pool({.num_threads = 2});
  ParticleMesh box({.edge = n}, pool);
  // Crossing at D = n / (2 pi amplitude); stop at half of it: later the voids hold less than a particle per cell, and the mesh
  // feels each.
  const double amplitude = 0.5 * static_cast<double>(n) / (2.0 * std::numbers::pi);
  start_plane_wave(box, amplitude, 0.02, 1);
  box.evolve(1.0, 40);
  std::vector<float> plane(static_cast<size_t>(n * n));
  box.displacement().read(5, n * n, n * n, plane.data());
  for (int64_t y = 0; y < n; ++y) {
    const double exact = amplitude * std::sin(2.0 * std::numbers::pi * static_cast<double>(y) / static_cast<double>(n));
    EXPECT_TRUE(within(plane[static_cast<size_t>(y * n + 3)], exact, {0.05 * amplitude, "a mesh of 32 cells to the wave"})) << y;
  }
}

TEST(SimulateGravity, SmallWavesGrowAsTheLinearTheory) {
  const int64_t n = 32;
  const Cosmology cosmology;
  // What the mesh takes from a wave of 32, 16 and 8 cells.
  for (const auto& [waves, bound] : {std::pair<int64_t, double>{1, 0.01}, {2, 0.03}, {4, 0.08}}) {
    ThreadPool pool({.num_threads = 1});
    ParticleMesh box({.edge = n, .deconvolve = true}, pool);
    start_plane_wave(box, 0.05, 0.05, waves);
    box.evolve(0.5, 20);
    std::vector<float> plane(static_cast<size_t>(n * n));
    box.displacement().read(0, n * n, n * n, plane.data());
    double amplitude = 0.0;
    for (int64_t y = 0; y < n; ++y) {
      amplitude += 2.0 / static_cast<double>(n) * plane[static_cast<size_t>(y * n)] *
                   std::sin(2.0 * std::numbers::pi * static_cast<double>(waves * y) / static_cast<double>(n));
    }
    EXPECT_TRUE(within(amplitude / 0.05 / cosmology.growth(0.5), 1.0, {bound, "what the mesh takes"})) << waves;
  }
}

TEST(SimulateGravity, NeitherThreadsNorMemoryChangeAByte) {
  const auto evolved = [](int threads, int64_t memory) {
    ThreadPool pool({.num_threads = threads});
    const Cosmology cosmology;
    ParticleMesh box(
        {.edge = 32, .cosmology = cosmology, .memory_bytes = memory, .scratch = std::filesystem::temp_directory_path()}, pool);
    box.start({.power = LinearPower(cosmology), .key = 5, .edge = 32, .box_mpc_h = 16.0}, 0.05);
    box.evolve(1.0, 8);
    std::vector<float> all(static_cast<size_t>(3 * 32 * 32 * 32));
    for (int64_t z = 0; z < 32; ++z) box.displacement().read(z, 0, 3 * 1024, all.data() + z * 3 * 1024);
    return std::pair(all, box.out_of_core());
  };
  const auto [one, one_in_file] = evolved(1, int64_t{1} << 30);
  const auto [three, three_in_file] = evolved(3, int64_t{1} << 30);
  const auto [small, small_in_file] = evolved(2, int64_t{1} << 20);
  EXPECT_FALSE(one_in_file || three_in_file);
  EXPECT_TRUE(small_in_file);
  EXPECT_EQ(one, three);
  EXPECT_EQ(one, small);
}

TEST(SimulateCosmology, TheSecondOrderGrowsAsTheSquareInMatterAlone) {
  const Cosmology matter{.omega_matter = 1.0}, ours;
  EXPECT_TRUE(within(matter.second_growth(0.3), -3.0 / 7.0 * 0.09, kIntegral));
  EXPECT_TRUE(within(matter.second_growth_rate(0.3), -6.0 / 7.0 * 0.3, kSlope));
  for (const double a : {0.05, 0.5, 1.0}) {
    EXPECT_TRUE(
        within(ours.second_growth_rate(a), (ours.second_growth(a + 1e-4) - ours.second_growth(a - 1e-4)) / 2e-4, kDifference));
  }
}

// All displacements, (3, z, y, x) as one array per axis.
std::array<std::vector<float>, 3> displacements(const ParticleMesh& box) {
  const int64_t n = box.options().edge, area = n * n;
  std::array<std::vector<float>, 3> all;
  for (size_t axis = 0; axis < 3; ++axis) {
    all[axis].resize(static_cast<size_t>(n * area));
    for (int64_t z = 0; z < n; ++z) {
      box.displacement().read(z, static_cast<int64_t>(axis) * area, area, all[axis].data() + z * area);
    }
  }
  return all;
}

TEST(SimulateStart, APlaneWaveHasNoSecondOrderTerm) {
  const int64_t n = 16;
  ThreadPool pool({.num_threads = 2});
  for (const std::array<int64_t, 3>& wave : {std::array<int64_t, 3>{0, 2, 0}, {1, 2, -3}}) {
    const auto density = [&](int64_t k0, int64_t k1, int64_t k2) -> std::complex<double> {
      const std::array<int64_t, 3> k{k0, k1, k2}, opposite{-k0, -k1, -k2};
      return k == wave || opposite == wave ? 0.4 : 0.0;
    };
    ParticleMesh first({.edge = n}, pool), second({.edge = n}, pool);
    first.start(density, 0.5, StartOrder::Zeldovich);
    second.start(density, 0.5, StartOrder::Second);
    const auto a = displacements(first), b = displacements(second);
    for (size_t axis = 0; axis < 3; ++axis) {
      for (size_t i = 0; i < a[axis].size(); ++i)
        ASSERT_TRUE(rounds_to(a[axis][i], b[axis][i], 1, kFp32, 32)) << axis << " " << i;
    }
  }
}

// delta = A cos(k z) + B cos(k x): phi_zz phi_xx = A B cos(k z) cos(k x), so psi2 = A B / (2 k) (sin(k z) cos(k x), 0, cos(k z)
// sin(k x)).
TEST(SimulateStart, TwoCrossedWavesHaveTheKnownSecondOrderTerm) {
  const int64_t n = 16;
  const double amplitude[2] = {0.6, 0.9}, wave = 2.0 * std::numbers::pi * 2.0 / static_cast<double>(n), a = 0.5;
  ThreadPool pool({.num_threads = 2});
  ParticleMesh box({.edge = n, .cosmology = {.omega_matter = 1.0}}, pool);
  box.start(
      [&](int64_t k0, int64_t k1, int64_t k2) -> std::complex<double> {
        if (k1 != 0) return 0.0;
        if (std::abs(k0) == 2 && k2 == 0) return 0.5 * amplitude[0];
        return k0 == 0 && std::abs(k2) == 2 ? 0.5 * amplitude[1] : 0.0;
      },
      a, StartOrder::Second);
  const auto got = displacements(box);
  std::vector<float> momentum(static_cast<size_t>(n * n));
  box.momentum().read(3, 0, n * n, momentum.data());
  for (int64_t z = 0; z < n; ++z) {
    for (int64_t x = 0; x < n; ++x) {
      const double cz = std::cos(wave * static_cast<double>(z)), sz = std::sin(wave * static_cast<double>(z));
      const double cx = std::cos(wave * static_cast<double>(x)), sx = std::sin(wave * static_cast<double>(x));
      const double first = -a / wave, second = -3.0 / 7.0 * a * a * amplitude[0] * amplitude[1] / (2.0 * wave);
      const auto cell = static_cast<size_t>((z * n + 5) * n + x);
      EXPECT_TRUE(rounds_to(got[0][cell], first * amplitude[0] * sz + second * sz * cx, 1, kFp32, 64));
      EXPECT_TRUE(rounds_to(got[1][cell], 0.0, 1, kFp32, 64));
      EXPECT_TRUE(rounds_to(got[2][cell], first * amplitude[1] * sx + second * cz * sx, 1, kFp32, 64));
      if (z == 3) {  // p = a^3 E dx/da, and the second order grows twice as fast
        const double speed = a * a * a * std::pow(a, -1.5) * (first * amplitude[0] * sz + 2.0 * second * sz * cx) / a;
        EXPECT_TRUE(rounds_to(momentum[static_cast<size_t>(5 * n + x)], speed, 1, kFp32, 64));
      }
    }
  }
}

// Crossed waves from a late start: how much of their second order, D2 A B / (2 k), is there at the end. The first order lacks it
// at the start, and has not made up for it when the box has grown by two and a half.
TEST(SimulateStart, TransientsOfTheSecondOrderAreSmaller) {
  const int64_t n = 32;
  const Cosmology cosmology;
  const double amplitude = 0.6, wave = 2.0 * std::numbers::pi / static_cast<double>(n), end = 0.4;
  const auto crossed = [&](int64_t k0, int64_t k1, int64_t k2) -> std::complex<double> {
    return k1 == 0 && std::abs(k0) + std::abs(k2) == 1 ? 0.5 * amplitude : 0.0;
  };
  ThreadPool pool({.num_threads = 2});
  const auto share = [&](StartOrder order) {
    ParticleMesh box({.edge = n, .cosmology = cosmology, .deconvolve = true}, pool);
    box.start(crossed, 0.15, order);
    box.evolve(end, 16);
    const auto along_z = displacements(box)[0];
    double sum = 0.0;
    for (int64_t z = 0; z < n; ++z) {
      for (int64_t x = 0; x < n; ++x) {
        sum += along_z[static_cast<size_t>(z * n * n + x)] * std::sin(wave * static_cast<double>(z)) *
               std::cos(wave * static_cast<double>(x));
      }
    }
    const double found = 4.0 * sum / static_cast<double>(n * n);
    return found / (cosmology.second_growth(end) * amplitude * amplitude / (2.0 * wave));
  };
  const double first = share(StartOrder::Zeldovich), second = share(StartOrder::Second);
  EXPECT_TRUE(within(second, 1.0, {0.1, "a mesh of 32 cells to the wave, and the third order"}));
  EXPECT_LT(std::abs(second - 1.0), 0.3 * std::abs(first - 1.0));
}

TEST(SimulateStart, TheSecondOrderIsTheSameInAFile) {
  const Cosmology cosmology;
  ThreadPool pool({.num_threads = 2});
  const auto started = [&](int64_t memory) {
    ParticleMesh box(
        {.edge = 32, .cosmology = cosmology, .memory_bytes = memory, .scratch = std::filesystem::temp_directory_path()}, pool);
    box.start({.power = LinearPower(cosmology), .key = 5, .edge = 32, .box_mpc_h = 16.0}, 0.05, StartOrder::Second);
    return std::pair(displacements(box), box.out_of_core());
  };
  const auto [memory, memory_in_file] = started(int64_t{1} << 30);
  const auto [file, file_in_file] = started(int64_t{1} << 20);
  EXPECT_FALSE(memory_in_file);
  EXPECT_TRUE(file_in_file);
  EXPECT_EQ(memory, file);
}

}  // namespace
}  // namespace welkin::data::simulate
