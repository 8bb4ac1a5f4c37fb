// SPDX-License-Identifier: Apache-2.0
#include "data/simulate/universe/cosmology.h"

#include <cmath>
#include <numbers>

namespace welkin::data::simulate {
namespace {

constexpr double kSecondOrderPower = -1.0 / 143.0;

// Gauss-Legendre of five points on `pieces` equal pieces: the integrands are smooth.
template <typename F>
double integrate(double from, double to, int pieces, const F& f) {
  constexpr double kNode[3] = {0.0, 0.5384693101056831, 0.9061798459386640};
  constexpr double kWeight[3] = {0.5688888888888889, 0.4786286704993665, 0.2369268850561891};
  const double half = 0.5 * (to - from) / pieces;
  double sum = 0.0;
  for (int i = 0; i < pieces; ++i) {
    const double middle = from + half * (2 * i + 1);
    sum += kWeight[0] * f(middle);
    for (int j = 1; j < 3; ++j) sum += kWeight[j] * (f(middle - half * kNode[j]) + f(middle + half * kNode[j]));
  }
  return sum * half;
}

// Heath (1977): D is proportional to E times the integral of da / (aE)^3 from 0.
double growth_integral(const Cosmology& cosmology, double a) {
  // Substituting a = x^2 keeps the integrand, which goes as a^1.5 at 0, smooth there.
  return integrate(0.0, std::sqrt(a), 64, [&](double x) {
    const double s = x * x;
    return 2.0 * x / std::pow(s * cosmology.expansion(s), 3);
  });
}

}  // namespace

double Cosmology::expansion(double a) const { return std::sqrt(omega_matter / (a * a * a) + 1.0 - omega_matter); }

double Cosmology::growth(double a) const {
  return expansion(a) * growth_integral(*this, a) / (expansion(1.0) * growth_integral(*this, 1.0));
}

double Cosmology::growth_rate(double a) const {
  const double e = expansion(a);
  const double slope = -1.5 * omega_matter / (a * a * a * a * e);  // dE/da
  return (slope * growth_integral(*this, a) + 1.0 / (a * a * a * e * e)) / (expansion(1.0) * growth_integral(*this, 1.0));
}

double Cosmology::second_growth(double a) const {
  const double d = growth(a), e = expansion(a);
  return -3.0 / 7.0 * d * d * std::pow(omega_matter / (a * a * a * e * e), kSecondOrderPower);
}

// The share of matter falls as d omega / da = -3 omega (1 - omega) / a.
double Cosmology::second_growth_rate(double a) const {
  const double e = expansion(a), share = omega_matter / (a * a * a * e * e);
  return second_growth(a) * (2.0 * growth_rate(a) / growth(a) - 3.0 * kSecondOrderPower * (1.0 - share) / a);
}

double Cosmology::kick_factor(double a, double b) const {
  return integrate(a, b, 16, [&](double s) { return 1.0 / (s * s * expansion(s)); });
}

double Cosmology::drift_factor(double a, double b) const {
  return integrate(a, b, 16, [&](double s) { return 1.0 / (s * s * s * expansion(s)); });
}

LinearPower::LinearPower(const Cosmology& cosmology) : cosmology_(cosmology) {
  const double unscaled = sigma(8.0);
  amplitude_ = (cosmology.sigma8 * cosmology.sigma8) / (unscaled * unscaled);
}

double LinearPower::transfer(double k_h_mpc) const {
  const double h = cosmology_.hubble, matter = cosmology_.omega_matter * h * h, baryon = cosmology_.omega_baryon * h * h;
  const double fraction = cosmology_.omega_baryon / cosmology_.omega_matter;
  const double sound = 44.5 * std::log(9.83 / matter) / std::sqrt(1.0 + 10.0 * std::pow(baryon, 0.75));  // Mpc
  const double alpha = 1.0 - 0.328 * std::log(431.0 * matter) * fraction + 0.38 * std::log(22.3 * matter) * fraction * fraction;
  const double shape = cosmology_.omega_matter * h * (alpha + (1.0 - alpha) / (1.0 + std::pow(0.43 * k_h_mpc * h * sound, 4)));
  constexpr double kTemperature = 2.7255 / 2.7;  // of the background radiation, in units of 2.7 K
  const double q = k_h_mpc * kTemperature * kTemperature / shape;
  const double l = std::log(2.0 * std::numbers::e + 1.8 * q);
  return l / (l + (14.2 + 731.0 / (1.0 + 62.5 * q)) * q * q);
}

double LinearPower::operator()(double k_h_mpc) const {
  const double t = transfer(k_h_mpc);
  return amplitude_ * std::pow(k_h_mpc, cosmology_.spectral_index) * t * t;
}

double LinearPower::sigma(double radius_mpc_h) const {
  const double variance = integrate(std::log(1e-5), std::log(1e2), 2000, [&](double log_k) {
    const double k = std::exp(log_k), x = k * radius_mpc_h;
    const double window = x < 1e-3 ? 1.0 : 3.0 * (std::sin(x) - x * std::cos(x)) / (x * x * x);
    return (*this)(k)*window * window * k * k * k / (2.0 * std::numbers::pi * std::numbers::pi);
  });
  return std::sqrt(variance);
}

}  // namespace welkin::data::simulate
