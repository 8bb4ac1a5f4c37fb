// SPDX-License-Identifier: Apache-2.0
// One or two layers of shallow water on the rotating sphere, with advected tracers: vorticity and divergence in spherical
// harmonics, gravity waves semi-implicit, leapfrog with the filter of Robert, Asselin and Williams (Williams 2009, MWR 137,
// 2538), and a hyperdiffusion of eighth order. docs/reference/simulate.md gives the equations. SI units throughout.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "data/simulate/globe/sphere_transform.h"

namespace welkin::data::simulate {

struct ShallowWaterOptions {
  int64_t truncation = 21;
  int64_t layers = 1;                   // 1 or 2; layer 0 is the upper one
  int64_t tracers = 0;                  // advected by the lowest layer
  double radius = 6.37122e6;            // m
  double rotation = 7.292e-5;           // rad/s
  double gravity = 9.80616;             // m/s2
  double density_ratio = 0.8;           // upper over lower layer
  std::vector<double> mean_depth{1e4};  // m, of each layer: the waves of these are semi-implicit
  double step_s = 1800.0;
  double diffusion_s = 0.0;  // e-folding time of the shortest wave; 0 = no diffusion
  double drag_s = 0.0;       // e-folding time of the wind of the lowest layer; 0 = none
  double filter = 0.1;       // strength of the time filter
};

// The forcing of the water, evaluated at points.
class WaterForcing {
 public:
  virtual ~WaterForcing() = default;
  // At column `lon` of row `side` (0 north, 1 south) of a pair. `tracer`: present values. Writes a source per tracer (unit/s),
  // and targets: the height of the lowest layer's upper surface above its mean (m), then each tracer's. They are approached at
  // the rates below.
  virtual void at_point(int64_t pair, int64_t lon, int side, const double* tracer, double* source, double* target) = 0;
  virtual double interface_rate() const = 0;             // 1/s
  virtual double tracer_rate(int64_t tracer) const = 0;  // 1/s
};

class ShallowWater {
 public:
  explicit ShallowWater(const ShallowWaterOptions& options);

  // Columns of the state, modes of: vorticity (1/s), divergence (1/s), depth (m) of layer i at 3 i, 3 i + 1, 3 i + 2; then
  // tracers.
  int64_t columns() const { return 3 * options_.layers + options_.tracers; }
  ModeValues& state() { return now_; }
  const ModeValues& state() const { return now_; }
  // Call it after the state was set by hand: the next step starts the leapfrog anew.
  void restart() { fresh_ = true; }

  // Height of the ground (m), one column of modes; part of the lowest layer's surface.
  void set_ground(ModeValues ground) { ground_ = std::move(ground); }

  void step(WaterForcing* forcing);  // one time step; `forcing` may be null

  const ShallowWaterOptions& options() const { return options_; }
  const SphereTransform& transform() const { return transform_; }
  // Total energy per area, J/m2 over the density of the lowest layer (m3/s2): kinetic plus potential. Sum over the model's own
  // grid.
  double energy() const;
  // Mean depth of a layer, m.
  double mean_depth(int64_t layer) const;
  // Potential enstrophy per area of one layer: half the mean of (absolute vorticity)^2 / depth.
  double potential_enstrophy(int64_t layer) const;

  // Modes of (vorticity, divergence) per layer as (stream function, velocity potential) over the radius: vectors of a Bundle.
  void wind_potentials(const ModeValues& state, int64_t layer, int64_t column, int64_t columns, ModeValues& out) const;

 private:
  Bundle point_bundle() const;
  Bundle tendency_bundle(bool forced) const;
  ModeValues to_point_modes() const;
  void point_products(int64_t pair, const std::vector<double>& points, std::vector<double>& products,
                      WaterForcing* forcing) const;
  ModeValues tendencies(WaterForcing* forcing) const;
  ModeValues advance(const ModeValues& tendency, bool forced, double delta) const;
  void solve_waves(int64_t degree, double delta, const std::complex<double>* tendency, const std::complex<double>* before,
                   const std::complex<double>* ground, bool forced, std::complex<double>* after) const;
  void damp(ModeValues& state, double delta) const;
  void approach_targets(const ModeValues& tendency, const WaterForcing& forcing, double delta, ModeValues& state) const;
  double wave_number_squared(int64_t degree) const;

  ShallowWaterOptions options_;
  SphereTransform transform_;
  std::vector<double> coriolis_;  // at the northern row of each pair
  ModeValues now_, before_, ground_;
  bool fresh_ = true;
};

}  // namespace welkin::data::simulate
