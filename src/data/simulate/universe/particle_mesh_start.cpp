// SPDX-License-Identifier: Apache-2.0
// Positions and momenta of the particles at the start: Lagrangian perturbation theory of first or second order (Scoccimarro
// 1998, MNRAS 299, 1097, appendix D2). x = q + D psi + D2 psi2 with psi = -grad phi, laplacian(phi) = delta, and psi2 = grad
// phi2, laplacian(phi2) = sum over i < j of phi_ii phi_jj - phi_ij^2. Needs no memory beyond the stores: while the second order
// is made, the six components of displacement and momentum hold the second derivatives of phi.
#include <algorithm>
#include <array>
#include <numbers>
#include <utility>
#include <vector>

#include "data/simulate/universe/box_fft.h"
#include "data/simulate/universe/particle_mesh.h"

namespace welkin::data::simulate {
namespace {

// phi_00, phi_11, phi_22, phi_01, phi_02, phi_12.
constexpr std::array<std::pair<size_t, size_t>, 6> kTide{{{0, 0}, {1, 1}, {2, 2}, {0, 1}, {0, 2}, {1, 2}}};

std::complex<double> tide_mode(std::complex<double> density, const std::array<int64_t, 3>& k, size_t tide) {
  const int64_t square = k[0] * k[0] + k[1] * k[1] + k[2] * k[2];
  if (square == 0) return 0.0;
  const auto [i, j] = kTide[tide];
  return density * (static_cast<double>(k[i] * k[j]) / static_cast<double>(square));
}

float tide_minors(const std::array<std::vector<float>, 6>& phi, size_t cell) {
  const auto at = [&](size_t tide) { return static_cast<double>(phi[tide][cell]); };
  return static_cast<float>(at(0) * at(1) - at(3) * at(3) + at(0) * at(2) - at(4) * at(4) + at(1) * at(2) - at(5) * at(5));
}

}  // namespace

void ParticleMesh::start(const InitialField& field, double a, StartOrder order) {
  start([&](int64_t k0, int64_t k1, int64_t k2) { return field.density(k0, k1, k2); }, a, order);
}

void ParticleMesh::start(const DensityModes& density, double a, StartOrder order) {
  if (order == StartOrder::Second) {
    second_order_source(density);
    second_order_displacement();
  }
  for (size_t axis = 0; axis < 3; ++axis) add_first_order(density, a, axis, order);
  a_ = a;
  measure_reach();
}

// The mesh becomes the real field of these modes.
void ParticleMesh::synthesise(const DensityModes& modes) {
  BoxFft fft(mesh_, pool_, window_bytes_);
  fft.synthesise([&](int64_t k0, int64_t k1, std::complex<float>* row) {
    for (int64_t k2 = 0; k2 <= options_.edge / 2; ++k2) row[k2] = std::complex<float>(modes(k0, k1, k2));
  });
  fft.inverse_planes();
}

// The result is in the first component of the displacement.
void ParticleMesh::second_order_source(const DensityModes& density) {
  const int64_t n = options_.edge, area = n * n;
  const auto slot = [&](size_t tide) -> PlaneStore& { return tide < 3 ? displacement_ : momentum_; };
  const auto offset = [&](size_t tide) { return static_cast<int64_t>(tide % 3) * area; };
  for (size_t tide = 0; tide < kTide.size(); ++tide) {
    synthesise([&](int64_t k0, int64_t k1, int64_t k2) { return tide_mode(density(k0, k1, k2), {k0, k1, k2}, tide); });
    pool_.parallel_for(n, [&](int64_t z) {
      std::vector<float> plane(static_cast<size_t>(area));
      mesh_.read(z, 0, area, plane.data());
      slot(tide).write(z, offset(tide), area, plane.data());
    });
  }
  pool_.parallel_for(n, [&](int64_t z) {
    std::array<std::vector<float>, 6> phi;
    for (size_t tide = 0; tide < phi.size(); ++tide) {
      phi[tide].resize(static_cast<size_t>(area));
      slot(tide).read(z, offset(tide), area, phi[tide].data());
    }
    for (size_t cell = 0; cell < phi[0].size(); ++cell) phi[0][cell] = tide_minors(phi, cell);
    displacement_.write(z, 0, area, phi[0].data());
  });
}

// psi2 = grad phi2 into the momentum, from its source in the displacement: the mode of -displacement_mode(source).
void ParticleMesh::second_order_displacement() {
  const int64_t n = options_.edge, area = n * n;
  const double share = 1.0 / (static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n));
  BoxFft fft(mesh_, pool_, window_bytes_);
  for (size_t axis = 0; axis < 3; ++axis) {
    pool_.parallel_for(n, [&](int64_t z) {
      std::vector<float> source(static_cast<size_t>(area));
      displacement_.read(z, 0, area, source.data());
      mesh_.write(z, 0, area, source.data());
    });
    fft.forward_planes();
    fft.filter([&](int64_t k0, int64_t k1, std::complex<float>* row) {
      for (int64_t k2 = 0; k2 <= n / 2; ++k2) {
        // Waves at the mesh's limit have no gradient that is real.
        const bool at_limit = std::max({std::abs(k0), std::abs(k1), k2}) == n / 2;
        const std::complex<double> source = at_limit ? 0.0 : -share * std::complex<double>(row[k2]);
        row[k2] = std::complex<float>(displacement_mode(source, {k0, k1, k2}, axis, n));
      }
    });
    fft.inverse_planes();
    pool_.parallel_for(n, [&](int64_t z) {
      std::vector<float> second(static_cast<size_t>(area));
      mesh_.read(z, 0, area, second.data());
      momentum_.write(z, static_cast<int64_t>(axis) * area, area, second.data());
    });
  }
}

// p = a^2 dx/dt / H0 = a^3 E dx/da.
void ParticleMesh::add_first_order(const DensityModes& density, double a, size_t axis, StartOrder order) {
  const int64_t n = options_.edge, area = n * n, offset = static_cast<int64_t>(axis) * area;
  const Cosmology& c = options_.cosmology;
  const bool second = order == StartOrder::Second;
  const double to_momentum = a * a * a * c.expansion(a);
  const double growth = c.growth(a), speed = to_momentum * c.growth_rate(a);
  const double growth2 = second ? c.second_growth(a) : 0.0, speed2 = second ? to_momentum * c.second_growth_rate(a) : 0.0;
  synthesise([&](int64_t k0, int64_t k1, int64_t k2) { return displacement_mode(density(k0, k1, k2), {k0, k1, k2}, axis, n); });
  pool_.parallel_for(n, [&](int64_t z) {
    std::vector<float> place(static_cast<size_t>(area)), momentum(place.size());
    mesh_.read(z, 0, area, place.data());
    if (second) momentum_.read(z, offset, area, momentum.data());
    for (size_t i = 0; i < place.size(); ++i) {
      const double psi = place[i], psi2 = momentum[i];
      place[i] = static_cast<float>(growth * psi + growth2 * psi2);
      momentum[i] = static_cast<float>(speed * psi + speed2 * psi2);
    }
    displacement_.write(z, offset, area, place.data());
    momentum_.write(z, offset, area, momentum.data());
  });
}

void ParticleMesh::start(const Filler& filler, double a) {
  const int64_t n = options_.edge, area = n * n;
  for (int64_t z = 0; z < n; ++z) {
    std::vector<float> places(static_cast<size_t>(3 * area)), momenta(static_cast<size_t>(3 * area));
    for (int64_t i = 0; i < area; ++i) {
      float place[3] = {0, 0, 0}, momentum[3] = {0, 0, 0};
      filler(z, i / n, i % n, place, momentum);
      for (int64_t axis = 0; axis < 3; ++axis) {
        places[static_cast<size_t>(axis * area + i)] = place[axis];
        momenta[static_cast<size_t>(axis * area + i)] = momentum[axis];
      }
    }
    displacement_.write(z, 0, 3 * area, places.data());
    momentum_.write(z, 0, 3 * area, momenta.data());
  }
  a_ = a;
  measure_reach();
}

}  // namespace welkin::data::simulate
