// SPDX-License-Identifier: Apache-2.0
// Accesses neighbours of an array by up to 16 bytes: a memory-bound kernel with accesses of 2 bytes has too few bytes in
// flight.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>

namespace welkin::ops {
namespace {

// The type of one access.
template <int Bytes>
struct WordOf {
  using Type = uint4;
};
template <>
struct WordOf<8> {
  using Type = uint2;
};
template <>
struct WordOf<4> {
  using Type = uint32_t;
};
template <>
struct WordOf<2> {
  using Type = uint16_t;
};

template <typename T, int N>
struct Pack {
  using Word = typename WordOf<N * sizeof(T)>::Type;
  static constexpr int kWords = N * sizeof(T) / sizeof(Word);
  static_assert(kWords * sizeof(Word) == N * sizeof(T));

  T lane[N];
};

// `from` is aligned to a word of the pack, as are_of_packs() checks.
template <int N, typename T>
__device__ __forceinline__ Pack<T, N> load_pack(const T* from) {
  using Word = typename Pack<T, N>::Word;
  Word words[Pack<T, N>::kWords];
#pragma unroll
  for (int w = 0; w < Pack<T, N>::kWords; ++w) words[w] = reinterpret_cast<const Word*>(from)[w];
  Pack<T, N> out;
  memcpy(out.lane, words, sizeof(words));
  return out;
}

// Uses an explicit instruction: nvcc would split a store of values computed lane by lane.
template <int N, typename T>
__device__ __forceinline__ void store_pack(const Pack<T, N>& values, T* to) {
  using Word = typename Pack<T, N>::Word;
  Word words[Pack<T, N>::kWords];
  memcpy(words, values.lane, sizeof(words));
#pragma unroll
  for (int w = 0; w < Pack<T, N>::kWords; ++w) __stcg(reinterpret_cast<Word*>(to) + w, words[w]);
}

// True if rows of `width` elements of these arrays, without gaps, consist of whole packs. Null arrays are ignored.
template <int N, typename... T>
bool are_of_packs(int64_t width, const T*... arrays) {
  return width % N == 0 && ((reinterpret_cast<uintptr_t>(arrays) % sizeof(typename Pack<T, N>::Word) == 0) && ...);
}

}  // namespace
}  // namespace welkin::ops
