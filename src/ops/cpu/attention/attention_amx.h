// SPDX-License-Identifier: Apache-2.0
// Shared by the two passes of attention by AMX: powers, rounding, pieces of scores, matmuls of tiles. See
// ops/cpu/lanes/lanes.h for why everything is in an unnamed namespace.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>

#include "ops/cpu/attention/attention_kernel.h"
#include "ops/cpu/lanes/amx.h"
#include "ops/cpu/lanes/bf16_dot.h"

namespace welkin::ops {
namespace {

constexpr int64_t kBand = 32;  // rows and columns of a piece of scores: two tiles each way
constexpr int64_t kPiece = kBand * kBand;
constexpr int64_t kScorePad = 768;  // floats: two pieces at the same offset of a page would wait for each other
constexpr int64_t kBf16 = sizeof(Bf16);
constexpr int64_t kPad = 32;  // numbers behind a row, since its length would otherwise be a power of two

// 2^x, relative error below 2e-7: floor(x) and a polynomial of the rest, fitted to the least relative error; exactly zero for
// minus infinity. (GCC 12 warns of these instructions' forms without a mask, but compiles the masked ones to the same code.)
WELKIN_INLINE __m512 power_of_two(__m512 x) {
  constexpr int kLessFloor = 0x9;
  const __m512 f = _mm512_maskz_reduce_ps(0xFFFF, x, kLessFloor);
  __m512 p = _mm512_set1_ps(1.8775767e-3F);
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(8.9893397e-3F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(5.58263175e-2F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.24015361F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.69315308F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.99999994F));
  return _mm512_maskz_scalef_ps(0xFFFF, p, x);
}

// The exact logit differs from a rounded base by up to half a unit in the base's last place. For two parts that is less than
// 2^-17 below 128, for one less than 2^-10 below 2^14: as small as the rounding of weights. Beyond, logits are rounded before
// the base is subtracted, so that the largest one becomes 0 and its weight 1. The builtin is one that compilers do not fuse
// into an FMA.
template <bool TwoParts>
constexpr float kCoarseBase = TwoParts ? 128.0F : 16384.0F;

template <bool Coarse>
WELKIN_INLINE __m512 relative_logit(__m512 score, __m512 scale, __m512 base) {
  constexpr int kToNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  if constexpr (Coarse) return _mm512_sub_ps(_mm512_maskz_mul_round_ps(0xFFFF, score, scale, kToNearest), base);
  return _mm512_fmsub_ps(score, scale, base);
}

// For `count` bases, a multiple of 16.
template <bool TwoParts>
WELKIN_INLINE bool has_coarse(const float* bases, int64_t count) {
  __mmask16 coarse = 0;
  for (int64_t i = 0; i < count; i += 16) {
    coarse |= _mm512_cmp_ps_mask(_mm512_abs_ps(_mm512_loadu_ps(bases + i)), _mm512_set1_ps(kCoarseBase<TwoParts>), _CMP_GE_OQ);
  }
  return coarse != 0;
}

// The bits of a float, prepared for truncation to bfloat16: half of the last remaining bit is added. (Ties go up; infinities
// and NaN stay. AVX512-BF16's conversions, with ties to even, and the permutations behind them take twice the cycles.)
WELKIN_INLINE __m512i to_cut(__m512 x) { return _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000)); }

// Words of two bfloat16, from results of to_cut().
WELKIN_INLINE __m512i cut_pairs(__m512i low, __m512i high) {
  return _mm512_mask_blend_epi16(0xAAAAAAAA, reinterpret_cast<__m512i>(reinterpret_cast<Words>(low) >> 16U), high);
}

// The remainder after truncation of `cut` (see to_cut); and two such remainders as words of two bfloat16.
WELKIN_INLINE __m512 rest_of(__m512 x, __m512i cut) {
  return _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_and_si512(cut, _mm512_set1_epi32(-0x10000))));
}
WELKIN_INLINE __m512i rest_pairs(__m512 low, __m512i cut_low, __m512 high, __m512i cut_high) {
  return cut_pairs(to_cut(rest_of(low, cut_low)), to_cut(rest_of(high, cut_high)));
}

// A piece of scores: 32 rows of packed rows times a panel.
struct ScorePiece {
  const char* left;
  const char* right;
  int64_t left_row;
  int64_t steps;
  float* to;
};

WELKIN_INLINE ScorePiece piece_of(const Bf16* rows, const Bf16* panel, int64_t dim, float* to) {
  return {reinterpret_cast<const char*>(rows), reinterpret_cast<const char*>(panel), dim * kBf16, dim / kTileDepth, to};
}

WELKIN_INLINE void score_steps(const ScorePiece& p, int64_t from, int64_t to) {
  constexpr int64_t kPanelRow = 4 * kBand;
  for (int64_t s = from; s < to; ++s) {
    const char* left = p.left + s * kTileDepth * kBf16;
    const char* right = p.right + s * kTileDepth / 2 * kPanelRow;
    _tile_loadd(4, left, p.left_row);
    _tile_loadd(6, right, kPanelRow);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, right + 64, kPanelRow);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, left + kTileRows * p.left_row, p.left_row);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
}

// A quarter of a piece, to be interleaved with other work.
template <int Quarter>
WELKIN_INLINE void score_quarter(const ScorePiece& p) {
  constexpr int64_t kRow = kBand * static_cast<int64_t>(sizeof(float));
  if constexpr (Quarter == 0) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    score_steps(p, 0, p.steps / 2);
  } else if constexpr (Quarter == 1) {
    score_steps(p, p.steps / 2, p.steps);
  } else if constexpr (Quarter == 2) {
    _tile_stored(0, p.to, kRow);
    _tile_stored(1, p.to + kTileRows, kRow);
  } else {
    _tile_stored(2, p.to + kTileRows * kBand, kRow);
    _tile_stored(3, p.to + kTileRows * kBand + kTileRows, kRow);
  }
}

WELKIN_INLINE void score_piece(const ScorePiece& p) {
  score_quarter<0>(p);
  score_quarter<1>(p);
  score_quarter<2>(p);
  score_quarter<3>(p);
}

// One matmul, or the three of operands in two parts, of one shape and with the same sum.
template <bool TwoParts>
using Matmuls = std::array<TileOperands, TwoParts ? 3 : 1>;

// Left times right, where each is a large part and, in two parts, a small one of the same layout.
template <bool TwoParts>
WELKIN_INLINE Matmuls<TwoParts> matmuls_of(const TileOperands& large, const Bf16* small_left, const Bf16* small_right) {
  Matmuls<TwoParts> matmuls;
  matmuls.fill(large);
  if constexpr (TwoParts) {
    matmuls[1].left = small_left;
    matmuls[2].right = small_right;
  }
  return matmuls;
}

// sums (32, 48) += the matmuls.
template <size_t N>
WELKIN_INLINE void add_two_by_three(const std::array<TileOperands, N>& matmuls, float* sums, int64_t stride) {
  const int64_t row = stride * static_cast<int64_t>(sizeof(float));
  float* lower = sums + kTileRows * stride;
  tiles_see_memory();
  _tile_loadd(0, sums, row);
  _tile_loadd(1, sums + 16, row);
  _tile_loadd(2, sums + 32, row);
  _tile_loadd(3, lower, row);
  _tile_loadd(4, lower + 16, row);
  _tile_loadd(5, lower + 32, row);
  for (const TileOperands& o : matmuls) {
    const auto* left = reinterpret_cast<const char*>(o.left);
    const auto* right = reinterpret_cast<const char*>(o.right);
    for (int64_t s = 0; s < o.steps; ++s) {
      _tile_loadd(6, left, o.left_row);
      _tile_loadd(7, right, o.right_row);
      _tile_dpbf16ps(0, 6, 7);
      _tile_loadd(7, right + 64, o.right_row);
      _tile_dpbf16ps(1, 6, 7);
      _tile_loadd(7, right + 128, o.right_row);
      _tile_dpbf16ps(2, 6, 7);
      _tile_loadd(6, left + kTileRows * o.left_row, o.left_row);
      _tile_dpbf16ps(5, 6, 7);
      _tile_loadd(7, right + 64, o.right_row);
      _tile_dpbf16ps(4, 6, 7);
      _tile_loadd(7, right, o.right_row);
      _tile_dpbf16ps(3, 6, 7);
      left += o.left_step;
      right += o.right_step;
    }
  }
  _tile_stored(0, sums, row);
  _tile_stored(1, sums + 16, row);
  _tile_stored(2, sums + 32, row);
  _tile_stored(3, lower, row);
  _tile_stored(4, lower + 16, row);
  _tile_stored(5, lower + 32, row);
}

// sums (48, 32) += the matmuls.
template <size_t N>
WELKIN_INLINE void add_three_by_two(const std::array<TileOperands, N>& matmuls, float* sums, int64_t stride) {
  const int64_t row = stride * static_cast<int64_t>(sizeof(float));
  const int64_t down = kTileRows * stride;
  tiles_see_memory();
  _tile_loadd(0, sums, row);
  _tile_loadd(1, sums + down, row);
  _tile_loadd(2, sums + 2 * down, row);
  _tile_loadd(3, sums + 16, row);
  _tile_loadd(4, sums + down + 16, row);
  _tile_loadd(5, sums + 2 * down + 16, row);
  for (const TileOperands& o : matmuls) {
    const auto* left = reinterpret_cast<const char*>(o.left);
    const auto* right = reinterpret_cast<const char*>(o.right);
    for (int64_t s = 0; s < o.steps; ++s) {
      _tile_loadd(7, right, o.right_row);
      _tile_loadd(6, left, o.left_row);
      _tile_dpbf16ps(0, 6, 7);
      _tile_loadd(6, left + kTileRows * o.left_row, o.left_row);
      _tile_dpbf16ps(1, 6, 7);
      _tile_loadd(6, left + 2 * kTileRows * o.left_row, o.left_row);
      _tile_dpbf16ps(2, 6, 7);
      _tile_loadd(7, right + 64, o.right_row);
      _tile_dpbf16ps(5, 6, 7);
      _tile_loadd(6, left + kTileRows * o.left_row, o.left_row);
      _tile_dpbf16ps(4, 6, 7);
      _tile_loadd(6, left, o.left_row);
      _tile_dpbf16ps(3, 6, 7);
      left += o.left_step;
      right += o.right_step;
    }
  }
  _tile_stored(0, sums, row);
  _tile_stored(1, sums + down, row);
  _tile_stored(2, sums + 2 * down, row);
  _tile_stored(3, sums + 16, row);
  _tile_stored(4, sums + down + 16, row);
  _tile_stored(5, sums + 2 * down + 16, row);
}

// sums (16 R, 16 V) += the matmuls.
template <int R, int V, size_t N>
WELKIN_INLINE void add_tile_matmuls(const std::array<TileOperands, N>& matmuls, float* sums, int64_t stride) {
  load_tiles<R, V>(sums, stride);
  for (const TileOperands& o : matmuls) add_tiles<R, V>(o);
  store_tiles<R, V>(sums, stride);
}

// Number of tiles to take next, of so many.
constexpr int64_t next_tiles(int64_t tiles) { return tiles % 3 == 0 || tiles > 4 ? 3 : tiles == 1 ? 1 : 2; }

// sums (32, width) += left times right.
template <size_t N>
WELKIN_INLINE void add_rows(std::array<TileOperands, N> matmuls, float* sums, int64_t stride, int64_t width) {
  for (int64_t tiles = width / kTileRows; tiles > 0;) {
    const int64_t now = next_tiles(tiles);
    if (now == 3) {
      add_two_by_three(matmuls, sums, stride);
    } else {
      now == 2 ? add_tile_matmuls<2, 2>(matmuls, sums, stride) : add_tile_matmuls<2, 1>(matmuls, sums, stride);
    }
    tiles -= now;
    for (TileOperands& o : matmuls) o.right += now * 32;
    sums += now * kTileRows;
  }
}

// sums (width, 32) += left times right.
template <size_t N>
WELKIN_INLINE void add_columns(std::array<TileOperands, N> matmuls, float* sums, int64_t stride, int64_t width) {
  for (int64_t tiles = width / kTileRows; tiles > 0;) {
    const int64_t now = next_tiles(tiles);
    if (now == 3) {
      add_three_by_two(matmuls, sums, stride);
    } else {
      now == 2 ? add_tile_matmuls<2, 2>(matmuls, sums, stride) : add_tile_matmuls<1, 2>(matmuls, sums, stride);
    }
    tiles -= now;
    for (TileOperands& o : matmuls) o.left += now * kTileRows * o.left_row / kBf16;
    sums += now * kTileRows * stride;
  }
}

}  // namespace

// The pass of attention_backward_amx.cpp, and its scratch memory in floats.
void attention_backward_amx(const AttentionBackward<Bf16>& work, float* scratch);
int64_t attention_backward_amx_scratch(int64_t padded_dim);

inline constexpr int64_t kAmxBackwardKeys = 128;  // keys of a block, and as many queries
inline constexpr int64_t kAmxBackwardQueries = 128;

}  // namespace welkin::ops
