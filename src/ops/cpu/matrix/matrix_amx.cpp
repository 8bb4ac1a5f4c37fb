// SPDX-License-Identifier: Apache-2.0
// Matmuls of matrices by the tiles of AMX. A packed tile is a contiguous KiB; the order of the three matmuls loads each tile
// once.
#include "ops/cpu/convolution/convolution_tiles.h"
#include "ops/cpu/lanes/amx.h"
#include "ops/cpu/lanes/bf16_dot.h"
#include "ops/cpu/matrix/matrix_kernel.h"

namespace welkin::ops {
namespace {

static_assert(kMatrixTile == kTileRows && kMatrixDepth == kTileDepth && kMatrixBlock == kSumBlock);

constexpr int64_t kTileLine = 64;  // bytes
constexpr int64_t kWords = 16;     // vectors of a tile, and words of a vector: two numbers each

WELKIN_INLINE __mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xFFFFU : count <= 0 ? 0U : (1U << static_cast<uint32_t>(count)) - 1U);
}

// 16 numbers in two parts: rounded, and the rounded remainder.
struct Parts {
  Halves large;
  Halves small;
};

WELKIN_INLINE Floats<16> widened(Halves x) { return reinterpret_cast<Floats<16>>(__builtin_convertvector(x, Words) << 16U); }

// Replaces numbers that would round to infinity by the largest bfloat16 of their sign. (One instruction: the less in size.)
WELKIN_INLINE Floats<16> finite_as_bf16(Floats<16> x) {
  constexpr int kLessInSize = 0x2;
  constexpr float kGreatestBf16 = 0x1.FEp127F;
  const __m512 most = _mm512_set1_ps(kGreatestBf16);
  return reinterpret_cast<Floats<16>>(_mm512_maskz_range_ps(0xFFFF, reinterpret_cast<__m512>(x), most, kLessInSize));
}

// Reads the first `count` numbers; the rest are zero.
WELKIN_INLINE Parts read_parts(const float* from, int64_t count) {
  const auto x = reinterpret_cast<Floats<16>>(_mm512_maskz_loadu_ps(first_lanes(count), from));
  const Halves large = to_bf16(finite_as_bf16(x));
  return {large, to_bf16(x - widened(large))};
}

WELKIN_INLINE Floats<16> side_by_side(Halves low, Halves high) {
  return reinterpret_cast<Floats<16>>(__builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
                                                              17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31));
}

// A tile's numbers as words of two: vector i is line i or, for `across`, pair i of depths.
struct TileWords {
  Floats<16> large[kWords];
  Floats<16> small[kWords];
};

WELKIN_INLINE TileWords read_words(const MatrixOperand& from, int64_t lines, int64_t depth) {
  TileWords out;
  for (int64_t i = 0; i < kWords; ++i) {
    if (from.across) {
      const Parts even = read_parts(from.data + 2 * i * from.stride, 2 * i < depth ? lines : 0);
      const Parts odd = read_parts(from.data + (2 * i + 1) * from.stride, 2 * i + 1 < depth ? lines : 0);
      out.large[i] = reinterpret_cast<Floats<16>>(interleaved(even.large, odd.large));
      out.small[i] = reinterpret_cast<Floats<16>>(interleaved(even.small, odd.small));
    } else {
      const int64_t there = i < lines ? depth : 0;
      const Parts first = read_parts(from.data + i * from.stride, there);
      const Parts second = read_parts(from.data + i * from.stride + 16, there - 16);
      out.large[i] = side_by_side(first.large, second.large);
      out.small[i] = side_by_side(first.small, second.small);
    }
  }
  return out;
}

WELKIN_INLINE void write_words(Floats<16> (&words)[kWords], bool transposed, Bf16* to) {
  if (transposed) transpose<16>(words);
  for (int64_t i = 0; i < kWords; ++i) _mm512_store_si512(to + i * kMatrixDepth, reinterpret_cast<__m512i>(words[i]));
}

// Rows of a left tile are lines, those of a right tile pairs of depths.
template <bool Left>
void pack(const MatrixOperand& from, int64_t lines, int64_t depth, Bf16* to) {
  const int64_t padded = (lines + kMatrixBlock - 1) / kMatrixBlock * kMatrixBlock;
  for (int64_t line = 0; line < padded; line += kMatrixTile) {
    for (int64_t d = 0; d < depth; d += kMatrixDepth, to += kMatrixParts * kMatrixNumbers) {
      TileWords words = read_words(from.from(line, d), lines - line, depth - d);
      write_words(words.large, from.across == Left, to);
      write_words(words.small, from.across == Left, to + kMatrixNumbers);
    }
  }
}

WELKIN_INLINE void load_left(const Bf16* from, int64_t next_tile) {
  _tile_loadd(4, from, kTileLine);
  _tile_loadd(5, from + next_tile, kTileLine);
}
WELKIN_INLINE void load_right(const Bf16* from, int64_t next_tile) {
  _tile_loadd(6, from, kTileLine);
  _tile_loadd(7, from + next_tile, kTileLine);
}

WELKIN_INLINE void add_pairs() {
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

WELKIN_INLINE void add_steps(const Bf16* left, const Bf16* right, int64_t tile, int64_t depth) {
  for (int64_t d = 0; d < depth; d += kMatrixDepth) {
    load_left(left, tile);
    load_right(right + kMatrixNumbers, tile);
    add_pairs();
    load_right(right, tile);
    add_pairs();
    load_left(left + kMatrixNumbers, tile);
    add_pairs();
    left += kMatrixParts * kMatrixNumbers;
    right += kMatrixParts * kMatrixNumbers;
  }
}

void multiply(const Bf16* left, const Bf16* right, int64_t tile, int64_t rows, int64_t depth, bool add, float* sums) {
  const Tiles tiles(kTileDepth);
  for (int64_t row = 0; row < rows; row += kMatrixBlock, left += 2 * tile, sums += kMatrixBlock * kMatrixBlock) {
    tiles_see_memory();
    add ? load_tiles<2, 2>(sums, kMatrixBlock) : zero_tiles<2, 2>();
    add_steps(left, right, tile, depth);
    store_tiles<2, 2>(sums, kMatrixBlock);
  }
}

WELKIN_INLINE Floats<16> read_result(const float* from, __mmask16 lanes) {
  return reinterpret_cast<Floats<16>>(_mm512_maskz_loadu_ps(lanes, from));
}

void write(const float* sums, const MatrixResult& result) {
  for (int64_t n = 0; n < result.columns; n += 16) {
    const __mmask16 lanes = first_lanes(result.columns - n);
    const Floats<16> bias = result.bias != nullptr ? read_result(result.bias + n, lanes) : Floats<16>{};
    for (int64_t r = 0; r < result.rows; ++r) {
      Floats<16> x = load<16>(sums + r * kMatrixBlock + n) + bias;
      float* to = result.to + r * result.stride + n;
      if (result.add) x += read_result(to, lanes);
      _mm512_mask_storeu_ps(to, lanes, reinterpret_cast<__m512>(x));
    }
  }
}

}  // namespace

const MatrixKernel& matrix_kernel_amx() {
  static constexpr MatrixKernel kKernel{pack<true>, pack<false>, multiply, write};
  return kKernel;
}

}  // namespace welkin::ops
