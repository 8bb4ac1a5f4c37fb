// SPDX-License-Identifier: Apache-2.0
// Blocks of Philox4x32-10 (core/philox.h has the scheme and its source) sixteen at a time, in vectors of the set.
// Included by one file per instruction set; see ops/cpu/lanes/lanes.h for the unnamed namespace.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <cstring>
#include <utility>

#include "ops/cpu/lanes/lanes.h"

namespace welkin::ops {
namespace {

constexpr int kPhiloxLanes = 16;
using LaneWords = uint32_t[kPhiloxLanes];

#if defined(__AVX512F__)
constexpr int kWideLanes = 8;
#elif defined(__AVX2__)
constexpr int kWideLanes = 4;
#else
constexpr int kWideLanes = 2;
#endif
typedef uint64_t Wide
    __attribute__((vector_size(8 * kWideLanes)));  // NOLINT(modernize-use-using): a using loses the attribute in GCC

// Products of the low halves of each lane. For a full vector product compilers emit three products, or split the loop.
WELKIN_INLINE Wide low_product(Wide a, Wide b) {
#if defined(__AVX512F__)
  // With a mask of all lanes: GCC 12 warns of an uninitialised vector in the plain form (its bug 105593).
  return reinterpret_cast<Wide>(_mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  return reinterpret_cast<Wide>(_mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#elif defined(__x86_64__)
  return reinterpret_cast<Wide>(_mm_mul_epu32(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
  return (a & 0xFFFFFFFFU) * (b & 0xFFFFFFFFU);
#endif
}

constexpr int kChains = 2;  // chains that hide each other's latency

// c[n][w]: word w of blocks (high, first + n kWideLanes + lane) of stream `key` in the low halves; high halves are undefined.
inline void philox_rounds(uint64_t key, uint64_t high, uint64_t first, Wide (&c)[kChains][4]) {
  for (int n = 0; n < kChains; ++n) {
    Wide block;
    for (int lane = 0; lane < kWideLanes; ++lane) block[lane] = first + static_cast<uint64_t>(n * kWideLanes + lane);
    c[n][0] = block;
    c[n][1] = block >> 32;
    c[n][2] = Wide{} + high;
    c[n][3] = Wide{} + (high >> 32);
  }
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (auto& words : c) {
      const Wide p0 = low_product(words[0], Wide{} + 0xD2511F53U);
      const Wide p1 = low_product(words[2], Wide{} + 0xCD9E8D57U);
      words[0] = (p1 >> 32) ^ words[1] ^ uint64_t { k0 };
      words[1] = p1;
      words[2] = (p0 >> 32) ^ words[3] ^ uint64_t { k1 };
      words[3] = p0;
    }
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
}

// c[w][lane] = word w of block (high, first + lane) of stream `key`.
inline void philox_words(uint64_t key, uint64_t high, uint64_t first, LaneWords (&c)[4]) {
  for (int begin = 0; begin < kPhiloxLanes; begin += kChains * kWideLanes) {
    Wide words[kChains][4];
    philox_rounds(key, high, first + static_cast<uint64_t>(begin), words);
    for (int n = 0; n < kChains; ++n) {
      for (int w = 0; w < 4; ++w) {
        for (int lane = 0; lane < kWideLanes; ++lane)
          c[w][begin + n * kWideLanes + lane] = static_cast<uint32_t>(words[n][w][lane]);
      }
    }
  }
}

// Interleaves lanes of a and b, from lane From of each.
template <int From, int... I>
WELKIN_INLINE Wide in_turns(Wide a, Wide b, std::integer_sequence<int, I...> /*lanes*/) {
  return __builtin_shufflevector(a, b, (From + I / 2 + I % 2 * kWideLanes)...);
}

// The same words in the order of blocks: in_order[4 lane + w].
inline void philox_words_in_order(uint64_t key, uint64_t high, uint64_t first, uint32_t (&in_order)[4 * kPhiloxLanes]) {
  constexpr auto kIndices = std::make_integer_sequence<int, kWideLanes>();
  for (int begin = 0; begin < kPhiloxLanes; begin += kChains * kWideLanes) {
    Wide words[kChains][4];
    philox_rounds(key, high, first + static_cast<uint64_t>(begin), words);
    for (int n = 0; n < kChains; ++n) {
      const Wide front = (words[n][0] & 0xFFFFFFFFU) | words[n][1] << 32;
      const Wide back = (words[n][2] & 0xFFFFFFFFU) | words[n][3] << 32;
      const Wide halves[2] = {in_turns<0>(front, back, kIndices), in_turns<kWideLanes / 2>(front, back, kIndices)};
      std::memcpy(in_order + 4 * (begin + n * kWideLanes), halves, sizeof halves);
    }
  }
}

}  // namespace
}  // namespace welkin::ops
