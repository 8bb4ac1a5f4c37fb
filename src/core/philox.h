// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC'11,
// doi:10.1145/2063384.2063405). Every random choice in Welkin is a pure function of a key and a counter, so it knows no order of
// execution, no rank and no thread.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace welkin {

using PhiloxBlock = std::array<uint32_t, 4>;

// One block of four independent 32-bit words. `key` names the stream, `high`/`low` the place in it.
constexpr PhiloxBlock philox(uint64_t key, uint64_t high, uint64_t low) {
  PhiloxBlock c{static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32), static_cast<uint32_t>(high),
                static_cast<uint32_t>(high >> 32)};
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1), static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1,
         static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

// A stream's key from the run's seed and the stream's name (FNV-1a 64 of the name, mixed with the seed by splitmix64's
// finaliser).
constexpr uint64_t stream_key(uint64_t seed, std::string_view name) {
  uint64_t h = 14695981039346656037ull;
  for (const char ch : name) h = (h ^ static_cast<unsigned char>(ch)) * 1099511628211ull;
  uint64_t z = h + (seed + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// Uniform in [0, 1), all 24 bits of a float's significand; never 1.
constexpr float unit_float(uint32_t word) { return static_cast<float>(word >> 8) * 0x1.0p-24f; }

// Uniform in the open interval (0, 1), for logarithms.
constexpr double open_unit(uint32_t word) { return (static_cast<double>(word) + 0.5) * 0x1.0p-32; }

// Two independent standard normals from two words (Box and Muller); |value| < 6.8, finite for every input.
inline std::array<double, 2> normal_pair(uint32_t a, uint32_t b) {
  const double radius = std::sqrt(-2.0 * std::log(open_unit(a)));
  const double angle = 6.283185307179586476925286766559 * open_unit(b);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

// An integer in [0, bound), bound >= 1, from 64 random bits (Lemire's multiply-shift; bias below bound / 2^64).
constexpr uint64_t bounded(uint32_t high, uint32_t low, uint64_t bound) {
  const uint64_t word = (uint64_t{high} << 32) | low;
  return static_cast<uint64_t>((static_cast<unsigned __int128>(word) * bound) >> 64);
}

}  // namespace welkin
