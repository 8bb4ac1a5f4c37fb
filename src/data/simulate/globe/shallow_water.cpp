// SPDX-License-Identifier: Apache-2.0
#include "data/simulate/globe/shallow_water.h"

#include <array>
#include <cmath>
#include <utility>

#include "core/error.h"

namespace welkin::data::simulate {
namespace {

using Complex = std::complex<double>;

// Products of two fields keep their true lower waves (Orszag's rule): 3 M + 1 points, and half as many rows.
int64_t grid_width(int64_t truncation) { return next_fast_length((3 * truncation + 2) / 2 * 2); }
int64_t grid_rows(int64_t truncation) { return ((3 * truncation + 1) / 2 + 1) / 2 * 2; }

}  // namespace

ShallowWater::ShallowWater(const ShallowWaterOptions& options)
    : options_(options),
      transform_(gaussian_latitudes(grid_rows(options.truncation)), grid_width(options.truncation), options.truncation) {
  WELKIN_CHECK(options.layers == 1 || options.layers == 2, "layers of water");
  WELKIN_CHECK(static_cast<int64_t>(options.mean_depth.size()) == options.layers, "a mean depth for each layer");
  for (int64_t pair = 0; pair < transform_.pairs(); ++pair) {
    coriolis_.push_back(2.0 * options.rotation * transform_.rows().sine[static_cast<size_t>(pair)]);
  }
  const auto modes = static_cast<size_t>(transform_.modes().count());
  now_.assign(modes * static_cast<size_t>(columns()), Complex{});
  before_ = now_;
  ground_.assign(modes, Complex{});
}

double ShallowWater::wave_number_squared(int64_t degree) const {
  return static_cast<double>(degree * (degree + 1)) / (options_.radius * options_.radius);
}

void ShallowWater::wind_potentials(const ModeValues& state, int64_t layer, int64_t column, int64_t columns_out,
                                   ModeValues& out) const {
  int64_t mode = 0;
  for (int64_t m = 0; m <= options_.truncation; ++m) {
    for (int64_t n = m; n <= options_.truncation; ++n, ++mode) {
      const double inverse = n == 0 ? 0.0 : -options_.radius / static_cast<double>(n * (n + 1));
      const auto from = static_cast<size_t>(mode * columns() + 3 * layer), to = static_cast<size_t>(mode * columns_out + column);
      out[to] = inverse * state[from];
      out[to + 1] = inverse * state[from + 1];
    }
  }
}

// Points hold, per layer, vorticity and depth; the tracers and the divergence of the lowest layer; then the winds.
Bundle ShallowWater::point_bundle() const {
  return {.scalars = 2 * options_.layers + options_.tracers + 1, .vectors = options_.layers};
}

// Tendencies hold: kinetic energy per layer; tracer sources; targets; then per layer (vorticity flux, mass flux), tracer fluxes.
Bundle ShallowWater::tendency_bundle(bool forced) const {
  return {.scalars = options_.layers + options_.tracers + (forced ? 1 + options_.tracers : 0),
          .vectors = 2 * options_.layers + options_.tracers};
}

ModeValues ShallowWater::to_point_modes() const {
  const int64_t layers = options_.layers, tracers = options_.tracers, out_columns = point_bundle().columns();
  const int64_t modes = transform_.modes().count(), scalars = point_bundle().scalars;
  ModeValues out(static_cast<size_t>(modes * out_columns));
  for (int64_t mode = 0; mode < modes; ++mode) {
    const Complex* from = now_.data() + mode * columns();
    Complex* to = out.data() + mode * out_columns;
    for (int64_t i = 0; i < layers; ++i) to[2 * i] = from[3 * i], to[2 * i + 1] = from[3 * i + 2];
    for (int64_t t = 0; t < tracers; ++t) to[2 * layers + t] = from[3 * layers + t];
    to[2 * layers + tracers] = from[3 * layers - 2];
  }
  for (int64_t i = 0; i < layers; ++i) wind_potentials(now_, i, scalars + 2 * i, out_columns, out);
  return out;
}

void ShallowWater::point_products(int64_t pair, const std::vector<double>& points, std::vector<double>& products,
                                  WaterForcing* forcing) const {
  const int64_t layers = options_.layers, tracers = options_.tracers;
  const Bundle in = point_bundle(), out = tendency_bundle(forcing != nullptr);
  products.assign(static_cast<size_t>(transform_.width() * 2 * out.columns()), 0.0);
  for (int64_t place = 0; place < 2 * transform_.width(); ++place) {
    const double* x = points.data() + place * in.columns();
    double* y = products.data() + place * out.columns();
    const double *wind = x + in.scalars, *tracer = x + 2 * layers;
    const double coriolis = (place % 2 == 0 ? 1.0 : -1.0) * coriolis_[static_cast<size_t>(pair)];
    double* flux = y + out.scalars;
    for (int64_t i = 0; i < layers; ++i) {
      const double u = wind[2 * i], v = wind[2 * i + 1], vorticity = x[2 * i] + coriolis;
      const double excess = x[2 * i + 1] - options_.mean_depth[static_cast<size_t>(i)];
      y[i] = 0.5 * (u * u + v * v);
      flux[4 * i] = vorticity * v;
      flux[4 * i + 1] = -vorticity * u;
      flux[4 * i + 2] = excess * u;
      flux[4 * i + 3] = excess * v;
    }
    const double u = wind[2 * layers - 2], v = wind[2 * layers - 1], divergence = tracer[tracers];
    if (forcing != nullptr)
      forcing->at_point(pair, place / 2, static_cast<int>(place % 2), tracer, y + layers, y + layers + tracers);
    for (int64_t t = 0; t < tracers; ++t) {
      y[layers + t] += tracer[t] * divergence;
      flux[4 * layers + 2 * t] = u * tracer[t];
      flux[4 * layers + 2 * t + 1] = v * tracer[t];
    }
  }
}

ModeValues ShallowWater::tendencies(WaterForcing* forcing) const {
  const ModeValues modes = to_point_modes();
  const Bundle bundle = tendency_bundle(forcing != nullptr);
  ModeValues sums(static_cast<size_t>(transform_.modes().count() * bundle.columns()));
  std::vector<double> points, products;
  for (int64_t pair = 0; pair < transform_.pairs(); ++pair) {
    transform_.to_points(pair, point_bundle(), modes, points);
    point_products(pair, points, products, forcing);
    transform_.add_to_modes(pair, bundle, products, sums);
  }
  return sums;
}

// Divergence and depth at the mean of old and new time level: (1 + delta^2 k2 G H) D = D_old + delta N + delta k2 G (h_old +
// delta N_h), with G the pressure of layer i per depth of layer j, and H the mean depths.
void ShallowWater::solve_waves(int64_t degree, double delta, const Complex* tendency, const Complex* before,
                               const Complex* ground, bool forced, Complex* after) const {
  const int64_t layers = options_.layers;
  const double g = options_.gravity, r = options_.density_ratio, k2 = wave_number_squared(degree);
  const std::array<std::array<double, 2>, 2> pressure{{{g, g}, {layers == 2 ? r * g : g, g}}};
  const Complex* flux = tendency + tendency_bundle(forced).scalars;
  std::array<Complex, 2> depth{}, right{}, divergence{};
  for (int64_t i = 0; i < layers; ++i)
    depth[static_cast<size_t>(i)] = before[3 * i + 2] - delta * flux[4 * i + 3] / options_.radius;
  for (int64_t i = 0; i < layers; ++i) {
    const auto a = static_cast<size_t>(i);
    const Complex forces = flux[4 * i + 1] / options_.radius + k2 * (tendency[i] + g * *ground);
    right[a] = before[3 * i + 1] + delta * forces;
    for (size_t b = 0; b < static_cast<size_t>(layers); ++b) right[a] += delta * k2 * pressure[a][b] * depth[b];
  }
  const double scale = delta * delta * k2;
  const auto matrix = [&](size_t a, size_t b) { return (a == b ? 1.0 : 0.0) + scale * pressure[a][b] * options_.mean_depth[b]; };
  if (layers == 1) {
    divergence[0] = right[0] / matrix(0, 0);
  } else {
    const double determinant = matrix(0, 0) * matrix(1, 1) - matrix(0, 1) * matrix(1, 0);
    divergence[0] = (matrix(1, 1) * right[0] - matrix(0, 1) * right[1]) / determinant;
    divergence[1] = (matrix(0, 0) * right[1] - matrix(1, 0) * right[0]) / determinant;
  }
  for (int64_t i = 0; i < layers; ++i) {
    const auto a = static_cast<size_t>(i);
    after[3 * i] = before[3 * i] + 2.0 * delta * flux[4 * i] / options_.radius;
    after[3 * i + 1] = 2.0 * divergence[a] - before[3 * i + 1];
    after[3 * i + 2] = 2.0 * (depth[a] - delta * options_.mean_depth[a] * divergence[a]) - before[3 * i + 2];
  }
}

ModeValues ShallowWater::advance(const ModeValues& tendency, bool forced, double delta) const {
  const Bundle bundle = tendency_bundle(forced);
  const int64_t layers = options_.layers;
  ModeValues after(now_.size());
  int64_t mode = 0;
  for (int64_t m = 0; m <= options_.truncation; ++m) {
    for (int64_t n = m; n <= options_.truncation; ++n, ++mode) {
      const Complex* change = tendency.data() + mode * bundle.columns();
      const Complex* before = before_.data() + mode * columns();
      Complex* to = after.data() + mode * columns();
      solve_waves(n, delta, change, before, ground_.data() + mode, forced, to);
      const Complex* tracer_flux = change + bundle.scalars + 4 * layers;
      for (int64_t t = 0; t < options_.tracers; ++t) {
        to[3 * layers + t] =
            before[3 * layers + t] + 2.0 * delta * (change[layers + t] - tracer_flux[2 * t + 1] / options_.radius);
      }
    }
  }
  return after;
}

void ShallowWater::damp(ModeValues& state, double delta) const {
  const int64_t layers = options_.layers;
  const double shortest = static_cast<double>(options_.truncation * (options_.truncation + 1));
  const double drag = options_.drag_s > 0.0 ? 1.0 / (1.0 + 2.0 * delta / options_.drag_s) : 1.0;
  int64_t mode = 0;
  for (int64_t m = 0; m <= options_.truncation; ++m) {
    for (int64_t n = m; n <= options_.truncation; ++n, ++mode) {
      const double rate =
          options_.diffusion_s > 0.0 ? std::pow(static_cast<double>(n * (n + 1)) / shortest, 4) / options_.diffusion_s : 0.0;
      const double keep = 1.0 / (1.0 + 2.0 * delta * rate);
      Complex* value = state.data() + mode * columns();
      // Surfaces are smoothed, not the depth over mountains: water at rest stays at rest.
      value[3 * layers - 1] += ground_[static_cast<size_t>(mode)];
      for (int64_t c = 0; c < columns(); ++c) value[c] *= keep;
      value[3 * layers - 1] -= ground_[static_cast<size_t>(mode)];
      value[3 * layers - 3] *= drag;
      value[3 * layers - 2] *= drag;
    }
  }
}

// Implicit in time. Mass that one layer gains the other loses.
void ShallowWater::approach_targets(const ModeValues& tendency, const WaterForcing& forcing, double delta,
                                    ModeValues& state) const {
  const int64_t layers = options_.layers, tracers = options_.tracers, width = tendency_bundle(true).columns();
  const auto share = [&](double rate) { return 2.0 * delta * rate / (1.0 + 2.0 * delta * rate); };
  // A constant field of value 1 has the mode sqrt(2).
  const double mean_surface = options_.mean_depth.back() * std::sqrt(2.0);
  for (int64_t mode = 0; mode < transform_.modes().count(); ++mode) {
    const Complex* target = tendency.data() + mode * width + layers + tracers;
    Complex* value = state.data() + mode * columns();
    Complex& lowest = value[3 * layers - 1];
    const Complex surface = lowest + ground_[static_cast<size_t>(mode)];
    const Complex gain = share(forcing.interface_rate()) * (target[0] + (mode == 0 ? mean_surface : 0.0) - surface);
    if (layers == 2) lowest += gain, value[2] -= gain;
    for (int64_t t = 0; t < tracers; ++t) {
      Complex& tracer = value[3 * layers + t];
      tracer += share(forcing.tracer_rate(t)) * (target[1 + t] - tracer);
    }
  }
}

void ShallowWater::step(WaterForcing* forcing) {
  if (fresh_) before_ = now_;
  const double delta = (fresh_ ? 0.5 : 1.0) * options_.step_s;
  const ModeValues tendency = tendencies(forcing);
  ModeValues after = advance(tendency, forcing != nullptr, delta);
  damp(after, delta);
  if (forcing != nullptr) approach_targets(tendency, *forcing, delta, after);
  if (!fresh_) {
    constexpr double kShare = 0.53;  // Williams: the rest of the filter's change goes to the new level, which keeps the mean
    for (size_t i = 0; i < now_.size(); ++i) {
      const Complex change = 0.5 * options_.filter * (before_[i] - 2.0 * now_[i] + after[i]);
      now_[i] += kShare * change;
      after[i] += (kShare - 1.0) * change;
    }
  }
  before_ = std::exchange(now_, std::move(after));
  fresh_ = false;
}

double ShallowWater::mean_depth(int64_t layer) const { return now_[static_cast<size_t>(3 * layer + 2)].real() / std::sqrt(2.0); }

double ShallowWater::energy() const {
  const ModeValues modes = to_point_modes();
  const Bundle in = point_bundle();
  const Bundle one{.scalars = 1, .vectors = 0};
  const double g = options_.gravity, r = options_.layers == 2 ? options_.density_ratio : 1.0;
  double sum = 0.0;
  std::vector<double> points, ground;
  for (int64_t pair = 0; pair < transform_.pairs(); ++pair) {
    transform_.to_points(pair, in, modes, points);
    transform_.to_points(pair, one, ground_, ground);
    double row = 0.0;
    for (int64_t place = 0; place < 2 * transform_.width(); ++place) {
      const double* x = points.data() + place * in.columns();
      const double* wind = x + in.scalars;
      double bottom = ground[static_cast<size_t>(place)];
      for (int64_t i = options_.layers - 1; i >= 0; --i) {
        const double density = i + 1 == options_.layers ? 1.0 : r, depth = x[2 * i + 1];
        row += density * (0.5 * depth * (wind[2 * i] * wind[2 * i] + wind[2 * i + 1] * wind[2 * i + 1]) +
                          g * depth * (bottom + 0.5 * depth));
        bottom += depth;
      }
    }
    sum += row * transform_.rows().weight[static_cast<size_t>(pair)];
  }
  return sum / (2.0 * static_cast<double>(transform_.width()));
}

double ShallowWater::potential_enstrophy(int64_t layer) const {
  const ModeValues modes = to_point_modes();
  const Bundle in = point_bundle();
  double sum = 0.0;
  std::vector<double> points;
  for (int64_t pair = 0; pair < transform_.pairs(); ++pair) {
    transform_.to_points(pair, in, modes, points);
    double row = 0.0;
    for (int64_t place = 0; place < 2 * transform_.width(); ++place) {
      const double* x = points.data() + place * in.columns();
      const double absolute = x[2 * layer] + (place % 2 == 0 ? 1.0 : -1.0) * coriolis_[static_cast<size_t>(pair)];
      row += 0.5 * absolute * absolute / x[2 * layer + 1];
    }
    sum += row * transform_.rows().weight[static_cast<size_t>(pair)];
  }
  return sum / (2.0 * static_cast<double>(transform_.width()));
}

}  // namespace welkin::data::simulate
