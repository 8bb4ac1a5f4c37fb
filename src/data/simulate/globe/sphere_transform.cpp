// SPDX-License-Identifier: Apache-2.0
#include "data/simulate/globe/sphere_transform.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace welkin::data::simulate {
namespace {

using Complex = std::complex<double>;

// to[i] += factor * from[i], with the parts as plain numbers: the compiler makes vectors of it.
void accumulate(const Complex* from, double factor, int64_t count, Complex* to) {
  const auto* a = reinterpret_cast<const double*>(from);
  auto* b = reinterpret_cast<double*>(to);
  for (int64_t i = 0; i < 2 * count; ++i) b[i] += factor * a[i];
}

Complex times_i(Complex z) { return {-z.imag(), z.real()}; }

}  // namespace

SphereTransform::SphereTransform(Latitudes rows, int64_t width, int64_t truncation)
    : rows_(std::move(rows)), width_(width), table_(rows_, truncation), fft_(width) {
  WELKIN_CHECK(width > 2 * truncation, "a grid that holds all waves");
}

// Even and odd degrees apart: north is their sum, south their difference.
SphereTransform::Fourier SphereTransform::sum_degrees(int64_t pair, Bundle bundle, const ModeValues& modes) const {
  const int64_t top = table_.modes().truncation, columns = bundle.columns(), s = bundle.scalars, v = 2 * bundle.vectors;
  const double *p = table_.p(pair), *slope = table_.slope(pair), *turn = table_.turn(pair);
  Fourier fourier(static_cast<size_t>((top + 1) * 2 * columns));
  // Per parity: scalars, slopes of vectors, turns of vectors.
  const int64_t part = s + 2 * v;
  std::vector<Complex> sums(static_cast<size_t>(2 * part));
  int64_t mode = 0;
  for (int64_t m = 0; m <= top; ++m) {
    std::ranges::fill(sums, Complex{});
    for (int64_t n = m; n <= top; ++n, ++mode) {
      Complex* sum = sums.data() + ((n - m) % 2) * part;
      const Complex* value = modes.data() + mode * columns;
      accumulate(value, p[mode], s, sum);
      accumulate(value + s, slope[mode], v, sum + s);
      accumulate(value + s, turn[mode], v, sum + s + v);
    }
    const Complex *even = sums.data(), *odd = even + part;
    Complex *north = fourier.data() + m * 2 * columns, *south = north + columns;
    for (int64_t c = 0; c < s; ++c) north[c] = even[c] + odd[c], south[c] = even[c] - odd[c];
    for (int64_t c = 0; c < v; c += 2) {
      const int64_t d = s + c, t = s + v + c;
      const auto wind = [&](Complex psi_slope, Complex chi_slope, Complex psi_turn, Complex chi_turn, Complex* out) {
        out[s + c] = times_i(chi_turn) - psi_slope;
        out[s + c + 1] = times_i(psi_turn) + chi_slope;
      };
      wind(even[d] + odd[d], even[d + 1] + odd[d + 1], even[t] + odd[t], even[t + 1] + odd[t + 1], north);
      wind(odd[d] - even[d], odd[d + 1] - even[d + 1], even[t] - odd[t], even[t + 1] - odd[t + 1], south);
    }
  }
  return fourier;
}

// Two neighbouring real columns travel as the real and imaginary part of one complex column.
void SphereTransform::to_points(int64_t pair, Bundle bundle, const ModeValues& modes, std::vector<double>& points) const {
  const Fourier fourier = sum_degrees(pair, bundle, modes);
  const int64_t columns = bundle.columns(), top = table_.modes().truncation;
  points.assign(static_cast<size_t>(width_ * 2 * columns), 0.0);
  auto* packed = reinterpret_cast<Complex*>(points.data());
  for (int64_t m = 0; m <= top; ++m) {
    const Complex* from = fourier.data() + m * 2 * columns;
    for (int64_t c = 0; c < columns; ++c) {
      const Complex a = from[2 * c], b = from[2 * c + 1];
      if (m == 0) {
        packed[c] = {a.real(), b.real()};
      } else {
        packed[m * columns + c] = {a.real() - b.imag(), a.imag() + b.real()};
        packed[(width_ - m) * columns + c] = {a.real() + b.imag(), b.real() - a.imag()};
      }
    }
  }
  fft_.transform(packed, columns, columns, FftSign::Inverse);
}

void SphereTransform::add_to_modes(int64_t pair, Bundle bundle, std::vector<double>& points, ModeValues& modes) const {
  const int64_t columns = bundle.columns(), top = table_.modes().truncation;
  auto* packed = reinterpret_cast<Complex*>(points.data());
  fft_.transform(packed, columns, columns, FftSign::Forward);
  Fourier fourier(static_cast<size_t>((top + 1) * 2 * columns));
  const double scale = 0.5 / static_cast<double>(width_);
  for (int64_t m = 0; m <= top; ++m) {
    Complex* to = fourier.data() + m * 2 * columns;
    for (int64_t c = 0; c < columns; ++c) {
      const Complex a = packed[m * columns + c], b = std::conj(packed[((width_ - m) % width_) * columns + c]);
      const Complex difference = a - b;
      to[2 * c] = scale * (a + b);
      to[2 * c + 1] = {scale * difference.imag(), -scale * difference.real()};
    }
  }
  project_degrees(pair, bundle, fourier, modes);
}

// Curl and divergence by parts: the derivative falls on the harmonics, none is taken of the points.
void SphereTransform::project_degrees(int64_t pair, Bundle bundle, const Fourier& fourier, ModeValues& modes) const {
  const int64_t top = table_.modes().truncation, columns = bundle.columns(), s = bundle.scalars, v = 2 * bundle.vectors;
  const double *p = table_.p(pair), *slope = table_.slope(pair), *turn = table_.turn(pair);
  const bool equator = 2 * pair + 1 == height();
  const double weight = rows_.weight[static_cast<size_t>(pair)] * (equator ? 0.5 : 1.0);
  std::vector<Complex> even(static_cast<size_t>(columns)), odd(even), curl_even(static_cast<size_t>(v)), curl_odd(curl_even);
  int64_t mode = 0;
  for (int64_t m = 0; m <= top; ++m) {
    const Complex *north = fourier.data() + m * 2 * columns, *south = north + columns;
    for (int64_t c = 0; c < columns; ++c) {
      even[static_cast<size_t>(c)] = weight * (north[c] + south[c]);
      odd[static_cast<size_t>(c)] = weight * (north[c] - south[c]);
    }
    // A vector's contribution to (curl, divergence): slope (u, -v) + turn (i v, i u).
    const auto set_curl = [&](const std::vector<Complex>& from, std::vector<Complex>& to) {
      for (int64_t c = 0; c < v; c += 2) {
        const Complex u = from[static_cast<size_t>(s + c)], w = from[static_cast<size_t>(s + c + 1)];
        to[static_cast<size_t>(c)] = times_i(w);
        to[static_cast<size_t>(c + 1)] = times_i(u);
      }
    };
    set_curl(even, curl_even);
    set_curl(odd, curl_odd);
    for (int64_t c = 0; c < v; c += 2) {
      even[static_cast<size_t>(s + c + 1)] = -even[static_cast<size_t>(s + c + 1)];
      odd[static_cast<size_t>(s + c + 1)] = -odd[static_cast<size_t>(s + c + 1)];
    }
    for (int64_t n = m; n <= top; ++n, ++mode) {
      const bool is_even = (n - m) % 2 == 0;
      const auto &same = is_even ? even : odd, &other = is_even ? odd : even, &across = is_even ? curl_even : curl_odd;
      Complex* value = modes.data() + mode * columns;
      accumulate(same.data(), p[mode], s, value);
      accumulate(other.data() + s, slope[mode], v, value + s);
      accumulate(across.data(), turn[mode], v, value + s);
    }
  }
}

}  // namespace welkin::data::simulate
