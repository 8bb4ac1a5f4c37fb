// SPDX-License-Identifier: Apache-2.0
// Blocks of Philox4x32-10 (core/philox.h has the scheme and its source) sixteen at a time, as loops over arrays that the compiler
// turns into vectors of the set. Included by one file per instruction set; see ops/cpu/lanes/lanes.h for why all is unnamed.
#pragma once

#include <cstdint>

namespace welkin::ops {
namespace {

constexpr int kPhiloxLanes = 16;
using LaneWords = uint32_t[kPhiloxLanes];

// c[w][lane] = word w of block (high, first + lane) of stream `key`.
inline void philox_words(uint64_t key, uint64_t high, uint64_t first, LaneWords (&c)[4]) {
  for (int lane = 0; lane < kPhiloxLanes; ++lane) {
    const uint64_t block = first + static_cast<uint64_t>(lane);
    c[0][lane] = static_cast<uint32_t>(block);
    c[1][lane] = static_cast<uint32_t>(block >> 32);
    c[2][lane] = static_cast<uint32_t>(high);
    c[3][lane] = static_cast<uint32_t>(high >> 32);
  }
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int lane = 0; lane < kPhiloxLanes; ++lane) {
      const uint64_t p0 = uint64_t{0xD2511F53U} * c[0][lane];
      const uint64_t p1 = uint64_t{0xCD9E8D57U} * c[2][lane];
      const uint32_t a = static_cast<uint32_t>(p1 >> 32) ^ c[1][lane] ^ k0;
      const uint32_t b = static_cast<uint32_t>(p0 >> 32) ^ c[3][lane] ^ k1;
      c[0][lane] = a;
      c[1][lane] = static_cast<uint32_t>(p1);
      c[2][lane] = b;
      c[3][lane] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
}

}  // namespace
}  // namespace welkin::ops
