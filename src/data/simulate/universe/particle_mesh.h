// SPDX-License-Identifier: Apache-2.0
// Dark matter as particles in a periodic cube, moved by gravity with the particle-mesh method (Hockney & Eastwood 1988): one
// particle per cell of the lattice, cloud-in-cell density, Poisson's equation by Fourier transforms, differences of fourth order,
// and a leapfrog in the scale factor (Quinn et al. 1997). docs/reference/simulate.md gives the equations.
//
// Units: length = one cell; momentum p = a^2 (dx/dt) / H0. All sums over particles are sums of integers or go over one particle,
// so the result is the same for any number of threads and any amount of memory.
#pragma once

#include <complex>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "core/process/thread_pool.h"
#include "data/simulate/universe/cosmology.h"
#include "data/simulate/universe/initial_modes.h"
#include "data/simulate/universe/plane_store.h"

namespace welkin::data::simulate {

// The placement of the particles at the start: to first order in the initial density, or to second (2LPT), whose transients die
// out much sooner.
enum class StartOrder { Zeldovich, Second };

struct ParticleMeshOptions {
  int64_t edge = 64;  // cells and particles along an edge; even, 8 to 4096
  Cosmology cosmology{};
  bool deconvolve = false;                  // divide the force by the two cloud-in-cell windows
  int64_t memory_bytes = int64_t{4} << 30;  // of all buffers; larger boxes go to unnamed files in `scratch`
  std::filesystem::path scratch = ".";
};

class ParticleMesh {
 public:
  ParticleMesh(const ParticleMeshOptions& options, ThreadPool& pool);

  // Places the particles at scale factor a: displacement D(a) psi, to second order + D2(a) psi2, and momentum to match.
  // `density`: the modes of the linear density contrast today, with density(-k) = conj(density(k)), asked for k2 >= 0.
  using DensityModes = std::function<std::complex<double>(int64_t k0, int64_t k1, int64_t k2)>;
  void start(const DensityModes& density, double a, StartOrder order);
  void start(const InitialField& field, double a, StartOrder order = StartOrder::Zeldovich);
  // One displacement (edge^3, three values) and momentum for each particle, given by a function of its place on the lattice: for
  // tests.
  using Filler = std::function<void(int64_t z, int64_t y, int64_t x, float* displacement, float* momentum)>;
  void start(const Filler& filler, double a);

  // Kick-drift-kick from the present scale factor to `a_end` in `steps` steps, even in sqrt(a). `progress` is told the step done.
  void evolve(double a_end, int64_t steps, const std::function<void(int64_t)>& progress = {});

  double scale_factor() const { return a_; }
  const ParticleMeshOptions& options() const { return options_; }
  bool out_of_core() const { return out_of_core_; }
  int64_t window_bytes() const { return window_bytes_; }
  int64_t reach() const { return reach_; }  // no particle is farther than this from its lattice plane, cells

  // Planes of particles: three components of (edge, edge) each, first along axis 0.
  const PlaneStore& displacement() const { return displacement_; }
  const PlaneStore& momentum() const { return momentum_; }
  ThreadPool& pool() const { return pool_; }

  // Mass in `planes` planes of cells from `first`, one particle = kCloudUnit; `mass` holds planes * edge^2.
  void deposit_mass(int64_t first, int64_t planes, int64_t* mass) const;
  // The potential of the present places: laplacian = 1.5 omega_m delta, cells. Left in the mesh (first edge^2 values of a plane).
  void solve_potential();
  const PlaneStore& mesh() const { return mesh_; }

 private:
  void synthesise(const DensityModes& modes);
  void second_order_source(const DensityModes& density);
  void second_order_displacement();
  void add_first_order(const DensityModes& density, double a, size_t axis, StartOrder order);
  void deposit_density();
  void kick_and_drift(double kick, double drift);
  void kick_slab(int64_t first, int64_t planes, double kick, double drift);
  void measure_reach();

  ParticleMeshOptions options_;
  ThreadPool& pool_;
  bool out_of_core_;
  int64_t window_bytes_;
  PlaneStore displacement_, momentum_, mesh_;
  double a_ = 1.0;
  int64_t reach_ = 0;
};

}  // namespace welkin::data::simulate
