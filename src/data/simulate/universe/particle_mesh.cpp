// SPDX-License-Identifier: Apache-2.0
#include "data/simulate/universe/particle_mesh.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "data/simulate/universe/box_fft.h"
#include "data/simulate/universe/cloud_in_cell.h"
#include "data/simulate/universe/force_window.h"

namespace welkin::data::simulate {
namespace {

int64_t store_bytes(int64_t edge) {
  return edge * (6 * edge * edge + mesh_plane_values(edge)) * static_cast<int64_t>(sizeof(float));
}

// Buffers of a box in memory: forces, potential and two copies of a plane of particles per thread, or the closure's moments.
int64_t resident_window(int64_t edge) { return edge * edge * edge * 64; }

bool needs_file(const ParticleMeshOptions& options) {
  return store_bytes(options.edge) + resident_window(options.edge) > options.memory_bytes;
}

std::optional<std::filesystem::path> scratch_of(const ParticleMeshOptions& options) {
  return needs_file(options) ? std::optional(options.scratch) : std::nullopt;
}

}  // namespace

ParticleMesh::ParticleMesh(const ParticleMeshOptions& options, ThreadPool& pool)
    : options_(options),
      pool_(pool),
      out_of_core_(needs_file(options)),
      window_bytes_(out_of_core_ ? options.memory_bytes / 10 * 9 : options.memory_bytes - store_bytes(options.edge)),
      displacement_(options.edge, 3 * options.edge * options.edge, scratch_of(options)),
      momentum_(options.edge, 3 * options.edge * options.edge, scratch_of(options)),
      mesh_(options.edge, mesh_plane_values(options.edge), scratch_of(options)) {}

void ParticleMesh::measure_reach() {
  const int64_t n = options_.edge, area = n * n;
  std::vector<float> farthest(static_cast<size_t>(n));
  pool_.parallel_for(n, [&](int64_t z) {
    std::vector<float> along(static_cast<size_t>(area));
    displacement_.read(z, 0, area, along.data());
    float most = 0.0f;
    for (const float d : along) most = std::max(most, std::abs(d));
    farthest[static_cast<size_t>(z)] = most;
  });
  reach_ = static_cast<int64_t>(std::ceil(*std::ranges::max_element(farthest)));
}

void ParticleMesh::deposit_mass(int64_t first, int64_t planes, int64_t* mass) const {
  const int64_t n = options_.edge, area = n * n;
  std::fill_n(mass, planes * area, int64_t{0});
  // Particles of lattice plane z lie in planes z - reach .. z + reach + 1.
  const int64_t sources = std::min(n, planes + 2 * reach_ + 1);
  pool_.parallel_for(sources, [&](int64_t i) {
    const int64_t z = ((first - reach_ - 1 + i) % n + n) % n;
    std::vector<float> places(static_cast<size_t>(3 * area));
    displacement_.read(z, 0, 3 * area, places.data());
    for (int64_t j = 0; j < area; ++j) {
      const CloudAxis along = cloud_axis(z, places[static_cast<size_t>(j)], n);
      const CloudAxis row = cloud_axis(j / n, places[static_cast<size_t>(area + j)], n);
      const CloudAxis column = cloud_axis(j % n, places[static_cast<size_t>(2 * area + j)], n);
      for (size_t c = 0; c < 8; ++c) {
        const int64_t plane = (along.cell[c >> 2] - first + 2 * n) % n;
        if (plane >= planes) continue;
        const int64_t weight = along.weight[c >> 2] * row.weight[(c >> 1) & 1] * column.weight[c & 1];
        int64_t& cell = mass[plane * area + row.cell[(c >> 1) & 1] * n + column.cell[c & 1]];
        std::atomic_ref<int64_t>(cell).fetch_add(weight, std::memory_order_relaxed);
      }
    }
  });
}

void ParticleMesh::deposit_density() {
  const int64_t n = options_.edge, area = n * n;
  const int64_t together = planes_that_fit("the density", area * 8, 3 * area * 4 * (pool_.num_threads() + 1), n, window_bytes_);
  std::vector<int64_t> mass(static_cast<size_t>(together * area));
  for (int64_t first = 0; first < n; first += together) {
    const int64_t planes = std::min(together, n - first);
    deposit_mass(first, planes, mass.data());
    pool_.parallel_for(planes, [&](int64_t p) {
      std::vector<float> contrast(static_cast<size_t>(area));
      for (int64_t i = 0; i < area; ++i) {
        const double density = static_cast<double>(mass[static_cast<size_t>(p * area + i)]) / static_cast<double>(kCloudUnit);
        contrast[static_cast<size_t>(i)] = static_cast<float>(density - 1.0);
      }
      mesh_.write(first + p, 0, area, contrast.data());
    });
  }
}

void ParticleMesh::solve_potential() {
  deposit_density();
  const int64_t n = options_.edge;
  const double wave = 2.0 * std::numbers::pi / static_cast<double>(n);
  const double source = 1.5 * options_.cosmology.omega_matter / std::pow(static_cast<double>(n), 3);
  // sinc^2 per axis is the cloud-in-cell window; the density and the force each carry one.
  std::vector<double> window(static_cast<size_t>(n / 2 + 1), 1.0);
  for (int64_t k = 1; options_.deconvolve && k <= n / 2; ++k) {
    const double half = 0.5 * wave * static_cast<double>(k);
    window[static_cast<size_t>(k)] = std::pow(std::sin(half) / half, -4);
  }
  BoxFft fft(mesh_, pool_, window_bytes_);
  fft.forward_planes();
  fft.filter([&](int64_t k0, int64_t k1, std::complex<float>* row) {
    const double sharpen = window[static_cast<size_t>(std::abs(k0))] * window[static_cast<size_t>(std::abs(k1))];
    for (int64_t k2 = 0; k2 <= n / 2; ++k2) {
      const int64_t square = k0 * k0 + k1 * k1 + k2 * k2;
      const double green =
          square == 0 ? 0.0 : -source * sharpen * window[static_cast<size_t>(k2)] / (wave * wave * static_cast<double>(square));
      row[k2] *= static_cast<float>(green);
    }
  });
  fft.inverse_planes();
}

void ParticleMesh::kick_slab(int64_t first, int64_t planes, double kick, double drift) {
  const int64_t n = options_.edge, area = n * n;
  const ForceWindow force(mesh_, pool_, first - reach_, std::min(n, planes + 2 * reach_ + 1));
  pool_.parallel_for(planes, [&](int64_t p) {
    std::vector<float> places(static_cast<size_t>(3 * area)), momenta(static_cast<size_t>(3 * area));
    displacement_.read(first + p, 0, 3 * area, places.data());
    momentum_.read(first + p, 0, 3 * area, momenta.data());
    for (int64_t i = 0; i < area; ++i) {
      const auto at = [&](int64_t axis) { return static_cast<size_t>(axis * area + i); };
      const auto pull = force.at(cloud_axis(first + p, places[at(0)], n), cloud_axis(i / n, places[at(1)], n),
                                 cloud_axis(i % n, places[at(2)], n));
      for (int64_t axis = 0; axis < 3; ++axis) {
        const double speed = momenta[at(axis)] + kick * pull[static_cast<size_t>(axis)];
        momenta[at(axis)] = static_cast<float>(speed);
        places[at(axis)] = static_cast<float>(places[at(axis)] + drift * speed);
      }
    }
    momentum_.write(first + p, 0, 3 * area, momenta.data());
    if (drift != 0.0) displacement_.write(first + p, 0, 3 * area, places.data());
  });
}

void ParticleMesh::kick_and_drift(double kick, double drift) {
  const int64_t n = options_.edge, area = n * n;
  const int64_t fixed = ForceWindow::bytes(n, std::min(n, 2 * reach_ + 1)) + 6 * area * 4 * (pool_.num_threads() + 1);
  const int64_t together = planes_that_fit("the force", ForceWindow::bytes(n, 1), fixed, n, window_bytes_);
  for (int64_t first = 0; first < n; first += together) kick_slab(first, std::min(together, n - first), kick, drift);
  if (drift != 0.0) measure_reach();
}

void ParticleMesh::evolve(double a_end, int64_t steps, const std::function<void(int64_t)>& progress) {
  const double from = std::sqrt(a_), width = (std::sqrt(a_end) - from) / static_cast<double>(steps);
  const auto time = [&](double step) { return std::pow(from + width * step, 2); };
  const Cosmology& cosmology = options_.cosmology;
  double pending = 0.0;  // the second half of the last kick, given together with the first half of the next
  for (int64_t step = 0; step < steps; ++step) {
    const double begin = time(static_cast<double>(step)), middle = time(static_cast<double>(step) + 0.5);
    const double end = time(static_cast<double>(step) + 1.0);
    solve_potential();
    kick_and_drift(-(pending + cosmology.kick_factor(begin, middle)), cosmology.drift_factor(begin, end));
    pending = cosmology.kick_factor(middle, end);
    a_ = end;
    if (progress) progress(step + 1);
  }
  solve_potential();
  kick_and_drift(-pending, 0.0);
}

}  // namespace welkin::data::simulate
