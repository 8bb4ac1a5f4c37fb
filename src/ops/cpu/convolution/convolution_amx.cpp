// SPDX-License-Identifier: Apache-2.0
// Convolutions of bfloat16 by AMX. A tile's rows must be equally spaced, those of a tap are not: rows are gathered first, 32
// at a time. Weight gradients sum over voxels: one side is transposed, pairs of voxels of the other are interleaved.
#include <algorithm>

#include "ops/cpu/convolution/convolution_bf16.h"
#include "ops/cpu/lanes/amx.h"

namespace welkin::ops {
namespace {

constexpr int64_t kLineBytes = 64;
constexpr int64_t kBf16 = sizeof(Bf16);
constexpr int64_t kLineNumbers = kLineBytes / kBf16;

int64_t tile_depth(int64_t depth) { return depth % kTileDepth == 0 ? kTileDepth : kTileDepth / 2; }

// Rows as a left operand reads them. Rows behind the last repeat it; their sums are unused.
template <int64_t Longest>
struct RowBlock {
  static constexpr int64_t kRow = Longest + kLineNumbers;  // not a power of two: such rows evict each other from the cache
  alignas(64) Bf16 data[kSumBlock * kRow];

  WELKIN_INLINE Bf16* row(int64_t i) { return data + i * kRow; }

  WELKIN_INLINE void gather(const Bf16* const* left, int64_t count, int64_t depth) {
    const int64_t rows = (count + kTileRows - 1) / kTileRows * kTileRows;
    for (int64_t i = 0; i < rows; ++i) {
      const Bf16* from = left[i < count ? i : count - 1];
      Bf16* to = row(i);
      int64_t k = 0;
      for (; k + kLineNumbers <= depth; k += kLineNumbers) _mm512_store_si512(to + k, _mm512_loadu_si512(from + k));
      if (k < depth) {
        _mm256_store_si256(reinterpret_cast<__m256i*>(to + k), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + k)));
      }
    }
  }
};

// The operands of one block of sums: gathered rows, and columns of a panel (depth / 2, width, 2).
template <int64_t Longest>
WELKIN_INLINE TileOperands operands_of(const RowBlock<Longest>& rows, const Bf16* panel, int64_t depth, int64_t width) {
  const int64_t step = tile_depth(depth);
  const int64_t pair_row = width * 2 * kBf16;
  return {rows.data, RowBlock<Longest>::kRow * kBf16, panel, pair_row, depth / step, step * kBf16, step / 2 * pair_row};
}

void add_rows_amx(const Bf16* const* left, float* const* result, int64_t count, const Bf16* panel, int64_t depth, int64_t width) {
  RowBlock<kDepthBlock> rows;
  alignas(64) float sums[kSumBlock * kSumStride];
  const Tiles tiles(tile_depth(depth));
  for (int64_t begin = 0; begin < count; begin += kSumBlock) {
    const int64_t now = count - begin < kSumBlock ? count - begin : kSumBlock;
    rows.gather(left + begin, now, depth);
    for (int64_t column = 0; column < width; column += kSumBlock) {
      const int64_t columns = width - column < kSumBlock ? width - column : kSumBlock;
      tile_matmul(operands_of(rows, panel + 2 * column, depth, width), now, columns, sums, kSumStride);
      for (int64_t i = 0; i < now; ++i) {
        float* to = result[begin + i] + column;
        for (int64_t n = 0; n < columns; n += 16) store<16>(to + n, load<16>(to + n) + load<16>(sums + i * kSumStride + n));
      }
    }
  }
}

// Copies `count` numbers, even.
WELKIN_INLINE void copy_piece(const Bf16* from, int64_t count, Bf16* to) {
  int64_t k = 0;
  for (; k + 16 <= count; k += 16) std::memcpy(to + k, from + k, 16 * sizeof(Bf16));
  for (; k + 4 <= count; k += 4) std::memcpy(to + k, from + k, 4 * sizeof(Bf16));
  for (; k < count; k += 2) std::memcpy(to + k, from + k, 2 * sizeof(Bf16));
}

void segment_rows_amx(const Bf16* const* left, const Segments& segments, int64_t count, const Bf16* panel, const float* bias,
                      float slope, Bf16* const* to, int64_t width) {
  RowBlock<kLongestColumn> rows;
  alignas(64) float sums[kSumBlock * kSumStride];
  const LeakyReluLanes<16> leaky_relu(slope);
  const int64_t filled = segments.count * segments.length;
  const int64_t depth = (filled + kChannelMultiple - 1) / kChannelMultiple * kChannelMultiple;
  const Tiles tiles(tile_depth(depth));
  for (int64_t begin = 0; begin < count; begin += kSumBlock) {
    const int64_t now = count - begin < kSumBlock ? count - begin : kSumBlock;
    const int64_t padded = now > kTileRows ? kSumBlock : kTileRows;
    for (int64_t i = 0; i < padded; ++i) {
      const Bf16* from = left[begin + (i < now ? i : now - 1)];
      Bf16* row = rows.row(i);
      for (int64_t s = 0; s < segments.count; ++s)
        copy_piece(from + segments.offsets[s], segments.length, row + s * segments.length);
      for (int64_t k = filled; k < depth; ++k) row[k] = Bf16{};
    }
    for (int64_t column = 0; column < width; column += kSumBlock) {
      const int64_t columns = width - column < kSumBlock ? width - column : kSumBlock;
      tile_matmul(operands_of(rows, panel + 2 * column, depth, width), now, columns, sums, kSumStride);
      for (int64_t i = 0; i < now; ++i) {
        for (int64_t n = 0; n < columns; n += 16) {
          Floats<16> x = load<16>(sums + i * kSumStride + n);
          if (bias != nullptr) x += load<16>(bias + column + n);
          store_bf16(to[begin + i] + column + n, leaky_relu.of(x));
        }
      }
    }
  }
}

WELKIN_INLINE void copy_row(const Bf16* from, int64_t count, Bf16* to) {
  int64_t k = 0;
  for (; k + kLineNumbers <= count; k += kLineNumbers) _mm512_storeu_si512(to + k, _mm512_loadu_si512(from + k));
  if (k < count) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + k), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + k)));
  }
}

void gather_amx(const TapPiece<Bf16>* pieces, int64_t num_pieces, int64_t count, Bf16* to) {
  for (int64_t i = 0; i < count; ++i, to += kGatheredRow) {
    Bf16* at = to;
    for (int64_t p = 0; p < num_pieces; ++p) {
      const Bf16* from = pieces[p].rows[i];
      if (from != nullptr) {
        copy_row(from, pieces[p].depth, at);
      } else {
        std::memset(static_cast<void*>(at), 0, static_cast<size_t>(pieces[p].depth) * sizeof(Bf16));
      }
      at += pieces[p].depth;
    }
  }
}

void add_matmul_amx(const Bf16* rows, int64_t count, const TapPiece<Bf16>* pieces, int64_t num_pieces, float* sums,
                    int64_t width) {
  alignas(64) float block[kSumBlock * kSumStride];
  int64_t step = kTileDepth;
  for (int64_t p = 0; p < num_pieces; ++p) step = std::min(step, tile_depth(pieces[p].depth));
  const Tiles tiles(step);
  const int64_t pair_row = width * 2 * kBf16;
  for (int64_t column = 0; column < width; column += kSumBlock) {
    const int64_t columns = std::min(kSumBlock, width - column);
    for (int64_t row = 0; row < count; row += kSumBlock) {
      const int64_t now = std::min(kSumBlock, count - row);
      const Bf16* left = rows + row * kGatheredRow;
      const auto operands = [&](int64_t p) {
        const TileOperands of_piece{
            left,         kGatheredRow * kBf16, pieces[p].panel + 2 * column, pair_row, pieces[p].depth / step,
            step * kBf16, step / 2 * pair_row};
        left += pieces[p].depth;
        return of_piece;
      };
      tile_matmuls(num_pieces, operands, now, columns, block, kSumStride);
      for (int64_t r = 0; r < now; ++r) {
        float* to = sums + (row + r) * width + column;
        for (int64_t n = 0; n < columns; n += 16) store<16>(to + n, load<16>(to + n) + load<16>(block + r * kSumStride + n));
      }
    }
  }
}

int64_t padded_voxels(int64_t count) { return (count + kTileDepth - 1) / kTileDepth * kTileDepth; }

// Pair p of `count` rows, 16 channels from `from` on.
WELKIN_INLINE __m512i row_pair(const Bf16* const* rows, int64_t count, int64_t p, int64_t from) {
  const auto half = [&](int64_t i) { return i < count && rows[i] != nullptr ? load_halves(rows[i] + from) : Halves{}; };
  return interleaved(half(2 * p), half(2 * p + 1));
}

void transpose_amx(const Bf16* const* rows, int64_t count, int64_t channels, Bf16* to) {
  for (int64_t begin = 0; begin < padded_voxels(count); begin += kTileDepth) {
    for (int64_t c = 0; c < channels; c += kTileRows) {
      Floats<16> words[16];
      for (int64_t p = 0; p < 16; ++p) words[p] = reinterpret_cast<Floats<16>>(row_pair(rows, count, begin / 2 + p, c));
      transpose<16>(words);
      for (int64_t r = 0; r < 16; ++r) {
        _mm512_storeu_si512(to + (c + r) * kTransposedRow + begin, reinterpret_cast<__m512i>(words[r]));
      }
    }
  }
}

void interleave_amx(const Bf16* const* rows, int64_t count, int64_t width, Bf16* to) {
  for (int64_t p = 0; p < padded_voxels(count) / 2; ++p) {
    for (int64_t n = 0; n < width; n += 16) _mm512_storeu_si512(to + (p * width + n) * 2, row_pair(rows, count, p, n));
  }
}

void multiply_amx(const Bf16* transposed, const Bf16* interleaved, int64_t count, float* sum, int64_t channels, int64_t width,
                  bool add) {
  alignas(64) float sums[kSumBlock * kSumStride];
  const Tiles tiles(kTileDepth);
  const int64_t pair_row = width * 2 * kBf16;
  const int64_t steps = padded_voxels(count) / kTileDepth;
  for (int64_t row = 0; row < channels; row += kSumBlock) {
    const int64_t rows = channels - row < kSumBlock ? channels - row : kSumBlock;
    for (int64_t column = 0; column < width; column += kSumBlock) {
      const int64_t columns = width - column < kSumBlock ? width - column : kSumBlock;
      tile_matmul({transposed + row * kTransposedRow, kTransposedRow * kBf16, interleaved + 2 * column, pair_row, steps,
                   kTileDepth * kBf16, kTileDepth / 2 * pair_row},
                  rows, columns, sums, kSumStride);
      for (int64_t r = 0; r < rows; ++r) {
        float* to = sum + (row + r) * width + column;
        for (int64_t n = 0; n < columns; n += 16) {
          const Floats<16> x = load<16>(sums + r * kSumStride + n);
          store<16>(to + n, add ? load<16>(to + n) + x : x);
        }
      }
    }
  }
}

void transpose_back_amx(const float* sum, int64_t channels, int64_t width, float* to, int64_t stride) {
  for (int64_t c = 0; c < channels; c += 16) {
    for (int64_t n = 0; n < width; n += 16) {
      Floats<16> rows[16];
      for (int64_t r = 0; r < 16; ++r) rows[r] = load<16>(sum + (c + r) * width + n);
      transpose<16>(rows);
      for (int64_t r = 0; r < 16; ++r) store<16>(to + (n + r) * stride + c, rows[r]);
    }
  }
}

}  // namespace

const ConvolutionKernel<Bf16>& convolution_kernel_amx() {
  static constexpr GatheredRows<Bf16> kGathered{gather_amx, add_matmul_amx};
  static constexpr TransposedOuter<Bf16> kTransposed{transpose_amx, interleave_amx, multiply_amx, transpose_back_amx};
  static constexpr ConvolutionKernel<Bf16> kKernel{pack_bf16,     add_rows_amx, segment_rows_amx, /*sum_outer=*/nullptr,
                                                   activate_bf16, gate_bf16,    scatter_line<16>, &kGathered,
                                                   &kTransposed};
  return kKernel;
}

}  // namespace welkin::ops
