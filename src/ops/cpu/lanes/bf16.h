// SPDX-License-Identifier: Apache-2.0
// A bfloat16 as its bits, for the torch-free kernels, and scalar conversions.
#pragma once

#include <bit>
#include <cstdint>

namespace welkin::ops {

struct Bf16 {
  uint16_t bits;
};
static_assert(sizeof(Bf16) == 2);

inline float to_float(float x) { return x; }
inline float to_float(Bf16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16U); }

// Rounded to nearest even; NaN stays NaN.
template <typename T>
T rounded_to(float x);
template <>
inline float rounded_to<float>(float x) {
  return x;
}
template <>
inline Bf16 rounded_to<Bf16>(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U;
  const uint32_t kept = bits >> 16U | 0x40U;
  return {static_cast<uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? kept : rounded)};
}

}  // namespace welkin::ops
