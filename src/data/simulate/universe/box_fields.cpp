// SPDX-License-Identifier: Apache-2.0
#include "data/simulate/universe/box_fields.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "data/simulate/universe/cloud_in_cell.h"
#include "data/simulate/universe/force_window.h"

namespace welkin::data::simulate {
namespace {

// Fixed point of the moments: integers, so that sums are the same in any order. 2^30 per km/s and 2^16 per km2/s2 hold 3e4
// particles of 1e4 km/s in one cell.
constexpr double kMomentumUnit = 0x1.0p30;
constexpr double kEnergyUnit = 0x1.0p16;
// Bytes per cell of a slab under work: five integer moments, sharp and smoothed floats, nine channels.
constexpr int64_t kCellBytes = 5 * 8 + 10 * 4 + 9 * 4;

void add(int64_t& cell, int64_t value) { std::atomic_ref<int64_t>(cell).fetch_add(value, std::memory_order_relaxed); }

}  // namespace

std::vector<std::string> nbody_channel_names() { return {"dark_matter_density", "velocity_0", "velocity_1", "velocity_2"}; }

std::vector<std::string> hydro_channel_names() {
  return {"gas_density", "gas_temperature", "gas_velocity_0", "gas_velocity_1", "gas_velocity_2"};
}

std::vector<std::string> nbody_channel_units(const BoxScaling& scaling) {
  const std::string speed = cat(scaling.velocity_km_s, " km s-1");
  return {cat("ln(mean density) / ", scaling.log_density), speed, speed, speed};
}

std::vector<std::string> hydro_channel_units(const BoxScaling& scaling) {
  const std::string speed = cat(scaling.velocity_km_s, " km s-1");
  return {cat("ln(mean density) / ", scaling.log_density),
          cat("(log10(K) - ", scaling.log_temperature_middle, ") / ", scaling.log_temperature_half), speed, speed, speed};
}

BoxFields::BoxFields(const ParticleMesh& particles, double cell_mpc_h, GasClosure closure, BoxScaling scaling)
    : particles_(particles), closure_(closure), scaling_(scaling), velocity_unit_(100.0 * cell_mpc_h / particles.scale_factor()) {
  const int64_t n = particles.options().edge;
  // One pass has a variance of half a square cell.
  const double cells = closure.filter_mpc_h / cell_mpc_h;
  passes_ = std::clamp<int64_t>(std::llround(2.0 * cells * cells), 1, n / 2 - 1);
  const int64_t plane = n * n * kCellBytes;
  planes_together_ =
      planes_that_fit("the fields", plane, 2 * passes_ * plane + 6 * n * n * 4 * (particles.pool().num_threads() + 1), n,
                      particles.window_bytes());
}

BoxFields::Moments BoxFields::deposit(int64_t first, int64_t planes) const {
  const int64_t n = particles_.options().edge, area = n * n, reach = particles_.reach();
  const auto cells = static_cast<size_t>(planes * area);
  std::array<std::vector<int64_t>, 5> sums;
  for (auto& sum : sums) sum.assign(cells, 0);
  // With 2 * passes extra planes a window may wrap onto itself: then every cell of it is deposited on its own.
  const int64_t turns = (planes + n - 1) / n;
  const int64_t sources = std::min(n, planes + 2 * reach + 1);
  particles_.pool().parallel_for(sources, [&](int64_t i) {
    const int64_t z = ((first - reach - 1 + i) % n + n) % n;
    std::vector<float> places(static_cast<size_t>(3 * area)), momenta(static_cast<size_t>(3 * area));
    particles_.displacement().read(z, 0, 3 * area, places.data());
    particles_.momentum().read(z, 0, 3 * area, momenta.data());
    for (int64_t j = 0; j < area; ++j) {
      const auto at = [&](int64_t axis) { return static_cast<size_t>(axis * area + j); };
      const CloudAxis along = cloud_axis(z, places[at(0)], n), row = cloud_axis(j / n, places[at(1)], n);
      const CloudAxis column = cloud_axis(j % n, places[at(2)], n);
      std::array<double, 3> velocity{};
      for (int64_t axis = 0; axis < 3; ++axis) velocity[static_cast<size_t>(axis)] = momenta[at(axis)] * velocity_unit_;
      const double square = velocity[0] * velocity[0] + velocity[1] * velocity[1] + velocity[2] * velocity[2];
      for (size_t c = 0; c < 8; ++c) {
        const int64_t weight = along.weight[c >> 2] * row.weight[(c >> 1) & 1] * column.weight[c & 1];
        const double share = static_cast<double>(weight) / static_cast<double>(kCloudUnit);
        const int64_t plane = ((along.cell[c >> 2] - first) % n + n) % n;
        for (int64_t turn = 0; turn < turns && plane + turn * n < planes; ++turn) {
          const auto cell = static_cast<size_t>(((plane + turn * n) * n + row.cell[(c >> 1) & 1]) * n + column.cell[c & 1]);
          add(sums[0][cell], weight);
          for (size_t axis = 0; axis < 3; ++axis) add(sums[axis + 1][cell], std::llrint(share * velocity[axis] * kMomentumUnit));
          add(sums[4][cell], std::llrint(share * square * kEnergyUnit));
        }
      }
    }
  });
  Moments moments;
  for (size_t m = 0; m < 5; ++m) {
    const double unit = m == 0 ? static_cast<double>(kCloudUnit) : m == 4 ? kEnergyUnit : kMomentumUnit;
    moments[m].resize(cells);
    std::ranges::transform(sums[m], moments[m].begin(),
                           [&](int64_t v) { return static_cast<float>(static_cast<double>(v) / unit); });
    sums[m] = {};
  }
  return moments;
}

// The binomial kernel is positive, so densities and (by Schwarz's inequality) velocity dispersions stay so. Each pass uses up the
// outermost plane on either side of the window.
void BoxFields::smooth(Moments& moments, int64_t planes) const {
  const int64_t n = particles_.options().edge, area = n * n;
  particles_.pool().parallel_for(5, [&](int64_t m) {
    std::vector<float>& field = moments[static_cast<size_t>(m)];
    std::vector<float> below(static_cast<size_t>(area)), here(static_cast<size_t>(area)), line(static_cast<size_t>(n));
    for (int64_t pass = 0; pass < passes_; ++pass) {
      const int64_t begin = pass + 1, end = planes - 1 - pass;
      std::copy_n(field.data() + (begin - 1) * area, area, below.data());
      for (int64_t p = begin; p < end; ++p) {
        float* plane = field.data() + p * area;
        std::copy_n(plane, area, here.data());
        for (int64_t i = 0; i < area; ++i)
          plane[i] = 0.25f * below[static_cast<size_t>(i)] + 0.5f * plane[i] + 0.25f * plane[area + i];
        std::swap(below, here);
      }
      for (int64_t row = begin * n; row < end * n; ++row) {
        float* x = field.data() + row * n;
        std::copy_n(x, n, line.data());
        for (int64_t i = 0; i < n; ++i) {
          const float left = line[static_cast<size_t>(i == 0 ? n - 1 : i - 1)],
                      right = line[static_cast<size_t>(i + 1 == n ? 0 : i + 1)];
          x[i] = 0.25f * left + 0.5f * x[i] + 0.25f * right;
        }
      }
      for (int64_t p = begin; p < end; ++p) {
        float* plane = field.data() + p * area;
        std::copy_n(plane, area, here.data());
        for (int64_t y = 0; y < n; ++y) {
          const float *left = here.data() + (y == 0 ? n - 1 : y - 1) * n, *right = here.data() + (y + 1 == n ? 0 : y + 1) * n;
          for (int64_t i = 0; i < n; ++i) plane[y * n + i] = 0.25f * left[i] + 0.5f * plane[y * n + i] + 0.25f * right[i];
        }
      }
    }
  });
}

void BoxFields::store_cell(const std::array<float, 5>& sharp, const std::array<float, 5>& soft, int64_t cell, int64_t cells,
                           BoxSlab& out) const {
  const auto bounded = [](double v) { return static_cast<float>(std::clamp(v, -1.0, 1.0)); };
  const auto log_density = [&](double v) {
    return bounded(std::log(std::max(v, scaling_.density_floor)) / scaling_.log_density);
  };
  const auto at = [&](int64_t channel) { return static_cast<size_t>(channel * cells + cell); };
  const double density = soft[0];
  out.nbody[at(0)] = log_density(sharp[0]);
  out.hydro[at(0)] = log_density(density);
  // Cells that no particle touches move as their surroundings do.
  constexpr double kFill = 0.01, kNothing = 1e-12;
  double bulk = 0.0;
  for (int64_t axis = 0; axis < 3; ++axis) {
    const auto m = static_cast<size_t>(axis + 1);
    const double gas = soft[m] / (density + kNothing);
    out.nbody[at(axis + 1)] =
        bounded((sharp[m] + kFill * soft[m]) / (sharp[0] + kFill * density + kNothing) / scaling_.velocity_km_s);
    out.hydro[at(axis + 2)] = bounded(gas / scaling_.velocity_km_s);
    bulk += gas * gas;
  }
  // Proton mass over Boltzmann's constant, times 0.59 for ionised hydrogen and helium, in kelvin per (km/s)^2.
  constexpr double kKelvin = 0.59 * 1.67262192e-27 / 1.380649e-23 * 1e6;
  const double dispersion = std::max(0.0, soft[4] / (density + kNothing) - bulk) / 3.0;
  const double thermalised = density * density / (density * density + closure_.shock_density * closure_.shock_density);
  const double ionised = closure_.temperature_kelvin *
                         std::pow(std::clamp(density, scaling_.density_floor, closure_.ionised_density), closure_.gamma - 1.0);
  const double temperature = ionised + thermalised * kKelvin * dispersion;
  out.hydro[at(1)] = bounded((std::log10(temperature) - scaling_.log_temperature_middle) / scaling_.log_temperature_half);
}

void BoxFields::compute(int64_t first, int64_t planes, BoxSlab& out) const {
  const int64_t n = particles_.options().edge, area = n * n, cells = planes * area;
  Moments soft = deposit(first - passes_, planes + 2 * passes_);
  Moments sharp;
  for (size_t m = 0; m < 5; ++m) {
    const auto begin = soft[m].begin() + passes_ * area;
    sharp[m].assign(begin, begin + cells);
  }
  smooth(soft, planes + 2 * passes_);
  out.first = first;
  out.planes = planes;
  out.nbody.resize(static_cast<size_t>(kNbodyChannels * cells));
  out.hydro.resize(static_cast<size_t>(kHydroChannels * cells));
  particles_.pool().parallel_for(planes, [&](int64_t p) {
    for (int64_t i = p * area; i < (p + 1) * area; ++i) {
      std::array<float, 5> a{}, b{};
      for (size_t m = 0; m < 5; ++m) {
        a[m] = sharp[m][static_cast<size_t>(i)];
        b[m] = soft[m][static_cast<size_t>(passes_ * area + i)];
      }
      store_cell(a, b, i, cells, out);
    }
  });
}

}  // namespace welkin::data::simulate
