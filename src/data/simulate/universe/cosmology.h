// SPDX-License-Identifier: Apache-2.0
// A flat universe of matter and a cosmological constant: expansion, linear growth, the factors of the leapfrog, and the linear
// power spectrum. docs/reference/simulate.md gives the formulas and their sources.
#pragma once

namespace welkin::data::simulate {

struct Cosmology {
  double omega_matter = 0.31;   // total matter over the critical density today; the rest is the cosmological constant
  double omega_baryon = 0.049;  // of the transfer function only
  double hubble = 0.677;        // H0 / (100 km/s/Mpc)
  double spectral_index = 0.966;
  double sigma8 = 0.81;  // linear rms of the density in spheres of 8 Mpc/h, today

  double expansion(double a) const;               // E(a) = H(a) / H0
  double growth(double a) const;                  // D(a), growing mode, 1 today
  double growth_rate(double a) const;             // dD/da
  double second_growth(double a) const;           // D2(a) = -3/7 D^2 omega_m(a)^(-1/143), Bouchet et al. (1995, A&A 296, 575)
  double second_growth_rate(double a) const;      // dD2/da
  double kick_factor(double a, double b) const;   // integral over [a, b] of da / (a^2 E): momentum per unit of force
  double drift_factor(double a, double b) const;  // integral over [a, b] of da / (a^3 E): comoving length per unit of momentum
};

// Linear power of the density today, k in h/Mpc -> (Mpc/h)^3: k^n T(k)^2 with the transfer function without wiggles of
// Eisenstein & Hu (1998, ApJ 496, 605, eqs. 26 and 28-31), scaled to sigma8.
class LinearPower {
 public:
  explicit LinearPower(const Cosmology& cosmology);
  double operator()(double k_h_mpc) const;
  double sigma(double radius_mpc_h) const;  // rms in spheres, by quadrature

 private:
  double transfer(double k_h_mpc) const;

  Cosmology cosmology_;
  double amplitude_ = 1.0;
};

}  // namespace welkin::data::simulate
