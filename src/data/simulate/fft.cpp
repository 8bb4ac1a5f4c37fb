// SPDX-License-Identifier: Apache-2.0
#include "data/simulate/fft.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "core/error.h"

namespace welkin::data::simulate {
namespace {

constexpr int64_t kBlock = 16;  // columns that are transformed together: a few vectors, and small enough for the cache

std::vector<int64_t> radices_of(int64_t length) {
  std::vector<int64_t> radices;
  for (const int64_t radix : {4, 2, 3, 5}) {
    for (; length % radix == 0; length /= radix) radices.push_back(radix);
  }
  for (int64_t prime = 7; length > 1; prime += 2) {
    for (; length % prime == 0; length /= prime) radices.push_back(prime);
  }
  return radices;
}

template <typename T>
std::complex<T> root_of_unity(int64_t numerator, int64_t denominator) {
  const double angle = -2.0 * std::numbers::pi * static_cast<double>(numerator % denominator) / static_cast<double>(denominator);
  return {static_cast<T>(std::cos(angle)), static_cast<T>(std::sin(angle))};
}

// y_k = w_k * sum_j x_j exp(-2 pi i j k / radix), for `count` neighbours; x_j and y_k are `from` and `to` values apart.
template <typename T>
struct Butterfly {
  const T* re;
  const T* im;
  T* out_re;
  T* out_im;
  int64_t from, to, count;
  const std::complex<T>* twiddle;

  void store(int64_t k, int64_t i, T r, T j) const {
    const T wr = twiddle[k].real(), wi = twiddle[k].imag();
    out_re[k * to + i] = r * wr - j * wi;
    out_im[k * to + i] = r * wi + j * wr;
  }
  void two() const {
    for (int64_t i = 0; i < count; ++i) {
      const T ar = re[i], ai = im[i], br = re[from + i], bi = im[from + i];
      out_re[i] = ar + br;
      out_im[i] = ai + bi;
      store(1, i, ar - br, ai - bi);
    }
  }
  void three() const {
    const T half = T(0.5), sine = static_cast<T>(std::numbers::sqrt3 / 2);
    for (int64_t i = 0; i < count; ++i) {
      const T ar = re[i], ai = im[i];
      const T sr = re[from + i] + re[2 * from + i], si = im[from + i] + im[2 * from + i];
      const T dr = (re[from + i] - re[2 * from + i]) * sine, di = (im[from + i] - im[2 * from + i]) * sine;
      const T mr = ar - half * sr, mi = ai - half * si;
      out_re[i] = ar + sr;
      out_im[i] = ai + si;
      store(1, i, mr + di, mi - dr);
      store(2, i, mr - di, mi + dr);
    }
  }
  void four() const {
    for (int64_t i = 0; i < count; ++i) {
      const T ar = re[i] + re[2 * from + i], ai = im[i] + im[2 * from + i];
      const T br = re[i] - re[2 * from + i], bi = im[i] - im[2 * from + i];
      const T cr = re[from + i] + re[3 * from + i], ci = im[from + i] + im[3 * from + i];
      const T dr = re[from + i] - re[3 * from + i], di = im[from + i] - im[3 * from + i];
      out_re[i] = ar + cr;
      out_im[i] = ai + ci;
      store(1, i, br + di, bi - dr);
      store(2, i, ar - cr, ai - ci);
      store(3, i, br - di, bi + dr);
    }
  }
  void any(int64_t radix, const std::complex<T>* roots) const {
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t k = 0; k < radix; ++k) {
        T r = re[i], j = im[i];
        for (int64_t n = 1; n < radix; ++n) {
          const std::complex<T> w = roots[(n * k) % radix];
          r += re[n * from + i] * w.real() - im[n * from + i] * w.imag();
          j += re[n * from + i] * w.imag() + im[n * from + i] * w.real();
        }
        store(k, i, r, j);
      }
    }
  }
};

}  // namespace

template <typename T>
Fft<T>::Fft(int64_t length) : length_(length) {
  WELKIN_CHECK(length >= 1, "the length of a Fourier transform");
  int64_t left = length, step = 1;
  for (const int64_t radix : radices_of(length)) {
    Pass pass{.radix = radix, .groups = left / radix, .step = step, .twiddle = {}, .roots = {}};
    for (int64_t g = 0; g < pass.groups; ++g) {
      for (int64_t k = 0; k < radix; ++k) pass.twiddle.push_back(root_of_unity<T>(g * k, left));
    }
    for (int64_t k = 0; k < radix; ++k) pass.roots.push_back(root_of_unity<T>(k, radix));
    passes_.push_back(std::move(pass));
    left /= radix;
    step *= radix;
  }
}

template <typename T>
void Fft<T>::transform_block(T* re, T* im, T* re_next, T* im_next) const {
  for (const Pass& pass : passes_) {
    const int64_t run = pass.step * kBlock;
    for (int64_t g = 0; g < pass.groups; ++g) {
      const int64_t in = run * g, out = run * pass.radix * g;
      const Butterfly<T> butterfly{.re = re + in,
                                   .im = im + in,
                                   .out_re = re_next + out,
                                   .out_im = im_next + out,
                                   .from = run * pass.groups,
                                   .to = run,
                                   .count = run,
                                   .twiddle = pass.twiddle.data() + g * pass.radix};
      switch (pass.radix) {
        case 2:
          butterfly.two();
          break;
        case 3:
          butterfly.three();
          break;
        case 4:
          butterfly.four();
          break;
        default:
          butterfly.any(pass.radix, pass.roots.data());
      }
    }
    std::swap(re, re_next);
    std::swap(im, im_next);
  }
}

template <typename T>
void Fft<T>::transform(std::complex<T>* data, int64_t columns, int64_t stride, FftSign sign) const {
  const auto size = static_cast<size_t>(length_ * kBlock);
  std::vector<T> scratch(4 * size);
  T *re = scratch.data(), *im = re + size, *re_next = im + size, *im_next = re_next + size;
  // The inverse is the forward transform with real and imaginary parts exchanged on the way in and out.
  if (sign == FftSign::Inverse) std::swap(re, im), std::swap(re_next, im_next);
  const bool odd = passes_.size() % 2 == 1;
  T *a = scratch.data(), *b = a + size, *a_next = b + size, *b_next = a_next + size;
  for (int64_t begin = 0; begin < columns; begin += kBlock) {
    const int64_t count = std::min(kBlock, columns - begin);
    for (int64_t i = 0; i < length_; ++i) {
      const std::complex<T>* row = data + i * stride + begin;
      for (int64_t c = 0; c < count; ++c) {
        a[i * kBlock + c] = row[c].real();
        b[i * kBlock + c] = row[c].imag();
      }
    }
    transform_block(re, im, re_next, im_next);
    const T *from_a = odd ? a_next : a, *from_b = odd ? b_next : b;
    for (int64_t i = 0; i < length_; ++i) {
      std::complex<T>* row = data + i * stride + begin;
      for (int64_t c = 0; c < count; ++c) row[c] = {from_a[i * kBlock + c], from_b[i * kBlock + c]};
    }
  }
}

template class Fft<float>;
template class Fft<double>;

int64_t next_fast_length(int64_t n) {
  for (int64_t candidate = n < 1 ? 1 : n;; ++candidate) {
    int64_t rest = candidate;
    for (const int64_t prime : {2, 3, 5}) {
      while (rest % prime == 0) rest /= prime;
    }
    if (rest == 1) return candidate;
  }
}

}  // namespace welkin::data::simulate
