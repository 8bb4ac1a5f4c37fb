// SPDX-License-Identifier: Apache-2.0
// The numbers of sixteen blocks as branch-free loops over arrays, which the compiler vectorises for the set. The
// functions are those of fdlibm (Sun Microsystems, 1993; freely redistributable), each within one unit of a double's last place.
// Compiled without fused multiply-adds: the angle must be the same double that the C library would receive. Included by one
// file per instruction set; see ops/cpu/lanes/lanes.h for the unnamed namespace.
#pragma once

#include <bit>
#include <cmath>

#include "ops/cpu/elementwise/normal_kernel.h"
#include "ops/cpu/lanes/philox_lanes.h"

namespace welkin::ops {
namespace {

constexpr int kLanes = kPhiloxLanes;
static_assert(kLanes == kNormalBlocks);
using Doubles = double[kLanes];

// (word + 0.5) / 2^32; every step is exact. It converts signed words, which all sets can.
inline void open_units(const LaneWords& words, Doubles& u) {
  for (int i = 0; i < kLanes; ++i) {
    u[i] = (static_cast<double>(static_cast<int32_t>(words[i] ^ 0x80000000U)) + 2147483648.5) * 0x1.0p-32;
  }
}

// sqrt(-2 log u) for u in (2^-34, 1).
inline void radii(const Doubles& u, Doubles& radius) {
  constexpr uint64_t kRootHalf = 0x3FE6A09E667F3BCD;  // sqrt(1/2): u = m 2^e, with m in [sqrt(1/2), sqrt(2))
  constexpr uint64_t kBias = 64;                      // keeps e above zero in unsigned arithmetic
  constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
  for (int i = 0; i < kLanes; ++i) {
    const uint64_t bits = std::bit_cast<uint64_t>(u[i]);
    const uint64_t biased = (bits - kRootHalf + (kBias << 52)) >> 52;
    const double e = std::bit_cast<double>(biased | 0x4330000000000000) - (0x1.0p52 + static_cast<double>(kBias));
    const double m = std::bit_cast<double>(bits - (biased << 52) + (kBias << 52));
    const double f = m - 1.0;
    const double half_square = 0.5 * f * f;
    const double s = f / (2.0 + f);
    const double z = s * s;
    const double w = z * z;
    const double even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    const double odd = z * (6.666666666666735130e-01 +
                            w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
    const double log = e * kLn2High - ((half_square - (s * (half_square + (even + odd)) + e * kLn2Low)) - f);
    radius[i] = std::sqrt(-2.0 * log);
  }
}

// Cosine and sine of 2 pi u, u in (0, 1).
inline void circle(const Doubles& u, Doubles& cosine, Doubles& sine) {
  constexpr double kQuarterHigh = 1.57079632673412561417e+00;  // the first 33 bits of pi / 2: a multiple of it is exact
  constexpr double kQuarterLow = 6.07710050650619224932e-11;
  constexpr double kShift = 0x1.8p52;  // the sum's low bits are the rounded integer
  for (int i = 0; i < kLanes; ++i) {
    const double angle = 6.283185307179586476925286766559 * u[i];
    const double shifted = 4.0 * u[i] + kShift;
    const double quarters = shifted - kShift;
    const uint64_t quadrant = std::bit_cast<uint64_t>(shifted);
    const double high = angle - quarters * kQuarterHigh;
    const double low = quarters * kQuarterLow;
    const double r = high - low;
    const double rest = (high - r) - low;
    const double z = r * r;
    const double s = 8.33333333332248946124e-03 +
                     z * (-1.98412698298579493134e-04 +
                          z * (2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)));
    const double cube = z * r;
    const double sin_r = r - ((z * (0.5 * rest - cube * s) - rest) - cube * -1.66666666666666324348e-01);
    const double c =
        z * (4.16666666666666019037e-02 +
             z * (-1.38888888888741095749e-03 +
                  z * (2.48015872894767294178e-05 +
                       z * (-2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)))));
    const double half = 0.5 * z;
    const double near_one = 1.0 - half;
    const double cos_r = near_one + (((1.0 - near_one) - half) + (z * c - r * rest));
    const uint64_t swap = uint64_t{0} - (quadrant & 1);
    const uint64_t cos_bits = std::bit_cast<uint64_t>(cos_r);
    const uint64_t sin_bits = std::bit_cast<uint64_t>(sin_r);
    const uint64_t chosen = (cos_bits ^ sin_bits) & swap;
    cosine[i] = std::bit_cast<double>((cos_bits ^ chosen) ^ (((quadrant + 1) & 2) << 62));
    sine[i] = std::bit_cast<double>((sin_bits ^ chosen) ^ ((quadrant & 2) << 62));
  }
}

// A float's rounding changes at the middle of the 29 dropped bits; numbers near the smallest normal float drop more.
inline void rounded(const Doubles& radius, const Doubles& side, double scale, float (&out)[kLanes], uint64_t (&doubt)[kLanes]) {
  constexpr uint64_t kDropped = (uint64_t{1} << 29) - 1;
  constexpr uint64_t kMiddle = uint64_t{1} << 28;
  constexpr uint64_t kNear = 64;  // units of a double's last place; the functions above differ by less than eight
  constexpr uint64_t kLeastExponent = 1023 - 120;
  Doubles x;
  for (int i = 0; i < kLanes; ++i) x[i] = scale * (radius[i] * side[i]);
  for (int i = 0; i < kLanes; ++i) out[i] = static_cast<float>(x[i]);
  for (int i = 0; i < kLanes; ++i) {  // a negative difference has its highest bit set
    const uint64_t bits = std::bit_cast<uint64_t>(x[i]);
    const uint64_t from_nearest = (bits & kDropped) - kMiddle + kNear;
    const uint64_t is_near = ((from_nearest - (2 * kNear + 1)) & ~from_nearest) >> 63;
    const uint64_t is_small = ((bits << 1 >> 53) - kLeastExponent) >> 63;
    doubt[i] = is_near | is_small;
  }
}

inline int64_t normals(uint64_t key, uint64_t first, double scale, float* out, int32_t* doubtful) {
  LaneWords words[4];
  philox_words(key, 0, first, words);
  float values[4][kLanes];
  uint64_t doubt[4][kLanes];
  for (int pair = 0; pair < 2; ++pair) {
    Doubles u;
    Doubles radius;
    Doubles cosine;
    Doubles sine;
    open_units(words[2 * pair], u);
    radii(u, radius);
    open_units(words[2 * pair + 1], u);
    circle(u, cosine, sine);
    rounded(radius, cosine, scale, values[2 * pair], doubt[2 * pair]);
    rounded(radius, sine, scale, values[2 * pair + 1], doubt[2 * pair + 1]);
  }
  uint64_t any = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int w = 0; w < 4; ++w) {
      out[4 * lane + w] = values[w][lane];
      any |= doubt[w][lane];
    }
  }
  if (any == 0) return 0;
  int64_t count = 0;
  for (int i = 0; i < 4 * kLanes; ++i) {
    if (doubt[i % 4][i / 4] != 0) doubtful[count++] = i;
  }
  return count;
}

constexpr NormalKernel kNormals{normals};

}  // namespace
}  // namespace welkin::ops
