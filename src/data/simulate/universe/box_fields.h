// SPDX-License-Identifier: Apache-2.0
// Makes the fields of the training files from particles: moments of the dark matter on the mesh, and the gas by a closure. This
// is a model of gas, not a hydrodynamic solution; docs/reference/simulate.md states the formulas and what they leave out.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "data/simulate/universe/particle_mesh.h"

namespace welkin::data::simulate {

inline constexpr int64_t kNbodyChannels = 4;
inline constexpr int64_t kHydroChannels = 5;

struct GasClosure {
  double filter_mpc_h = 0.5;        // comoving rms width of the pressure smoothing (filtering scale)
  double temperature_kelvin = 1e4;  // T0 of the photo-ionised gas at mean density
  double gamma = 1.6;               // T = T0 density^(gamma - 1), up to `ionised_density`
  double ionised_density = 10.0;    // mean densities; above, cooling holds the gas at the temperature of this density
  double shock_density = 3.0;       // mean densities at which half of the unresolved motion has become heat
};

// Scaling from physical to stored channels; all stored values lie in [-1, 1].
struct BoxScaling {
  double velocity_km_s = 2000.0;  // stored = velocity / this
  double log_density = 14.0;      // stored = ln(density) / this, density in mean densities, at least density_floor
  double density_floor = 1e-2;
  double log_temperature_middle = 5.0;  // stored = (log10(T / K) - this) / log_temperature_half
  double log_temperature_half = 3.0;
};

// Channel names and units in the stored order.
std::vector<std::string> nbody_channel_names();
std::vector<std::string> hydro_channel_names();
std::vector<std::string> nbody_channel_units(const BoxScaling& scaling);
std::vector<std::string> hydro_channel_units(const BoxScaling& scaling);

// Some planes of a box: (channel, planes, edge, edge) each.
struct BoxSlab {
  int64_t first = 0, planes = 0;
  std::vector<float> nbody, hydro;
};

class BoxFields {
 public:
  // `cell_mpc_h` = comoving edge of a cell. The particles outlive the object and rest.
  BoxFields(const ParticleMesh& particles, double cell_mpc_h, GasClosure closure, BoxScaling scaling);

  int64_t planes_together() const { return planes_together_; }  // slab that fits the memory of the particles' options
  void compute(int64_t first, int64_t planes, BoxSlab& out) const;

 private:
  // Per cell, in mean densities, km/s and km2/s2: density, three momenta, twice the kinetic energy.
  using Moments = std::array<std::vector<float>, 5>;
  Moments deposit(int64_t first, int64_t planes) const;
  void smooth(Moments& moments, int64_t planes) const;
  void store_cell(const std::array<float, 5>& sharp, const std::array<float, 5>& soft, int64_t cell, int64_t cells,
                  BoxSlab& out) const;

  const ParticleMesh& particles_;
  GasClosure closure_;
  BoxScaling scaling_;
  double velocity_unit_;  // km/s per unit of momentum
  int64_t passes_;        // of the kernel (1, 2, 1) / 4 along each axis
  int64_t planes_together_;
};

}  // namespace welkin::data::simulate
