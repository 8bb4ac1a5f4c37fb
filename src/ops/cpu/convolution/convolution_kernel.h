// SPDX-License-Identifier: Apache-2.0
// The matmuls of a convolution over channels-last boxes, tap by tap, as plain pointers, and their table per
// instruction set; torch-free. A tap joins voxels of one grid to voxels of another; each voxel is a vector of channels. Only
// existing pairs are listed, so taps on the padding cost nothing, and nothing is copied into columns. Sums are float.
#pragma once

#include <cstdint>

#include "ops/base/instruction_set.h"
#include "ops/cpu/lanes/bf16.h"

namespace welkin::ops {

inline constexpr int64_t kChannelPanel = 64;     // most channels of the result per call
inline constexpr int64_t kChannelMultiple = 16;  // widths and depths are multiples of this
inline constexpr int64_t kFloatMultiple = 8;     // those of float matmuls are multiples of this
inline constexpr int64_t kDepthBlock = 256;      // most channels of the operand that a call sums over; even
inline constexpr int64_t kLongestColumn = 512;   // longest sum of one matmul; longer columns are sums of short ones
inline constexpr int64_t kGatheredDepth = 512;
inline constexpr int64_t kGatheredRow = 544;       // like kTransposedRow
inline constexpr int64_t kTransposedVoxels = 256;  // of a matmul of TransposedOuter
inline constexpr int64_t kTransposedRow = 288;     // not a power of two: such rows evict each other from the cache
inline constexpr int64_t kPairBlock = 64;          // most pairs of a call of sum_outer

// Element (k, n) of a matrix of weights lies at data + k * depth_stride + n * width_stride; one of the strides is 1.
struct WeightMatrix {
  const float* data = nullptr;
  int64_t depth_stride = 0;
  int64_t width_stride = 0;
};

// A row of a left operand in pieces: element d at row + offsets[d / length] + d % length. length is even, and all are
// at most kLongestColumn.
struct Segments {
  const int64_t* offsets = nullptr;
  int64_t count = 0;
  int64_t length = 0;
};

// A block of channels of one tap, for some voxels: their rows, and the packed panel (depth, width) to multiply them by.
template <typename T>
struct TapPiece {
  const T* const* rows = nullptr;  // a null row means zeros
  int64_t depth = 0;
  const T* panel = nullptr;
};

// Matmuls for gathered rows: the rows of several pieces are concatenated once for all panels. Together the pieces have a depth
// of at most kGatheredDepth.
template <typename T>
struct GatheredRows {
  // Row i of `to`, at i * kGatheredRow, = the concatenated rows i of the pieces. `to` has room for whole blocks of 32 rows.
  void (*gather)(const TapPiece<T>* pieces, int64_t num_pieces, int64_t count, T* to);
  // sums (count, width) += the rows times the pieces' panels.
  void (*add_matmul)(const T* rows, int64_t count, const TapPiece<T>* pieces, int64_t num_pieces, float* sums, int64_t width);
};

// Weight gradients whose matmuls read one side channel by channel. Transposing costs as much as multiplying by 64 channels, so
// it is done once for many channels of the other side. At most kTransposedVoxels voxels; up to a multiple of 32 they are
// zero.
template <typename T>
struct TransposedOuter {
  // Element (c, i) of `to`, at c * kTransposedRow + i, = rows[i][c].
  void (*transpose)(const T* const* rows, int64_t count, int64_t channels, T* to);
  // to (voxels / 2, width, 2) = interleaved pairs of rows; a null row means zeros.
  void (*interleave)(const T* const* rows, int64_t count, int64_t width, T* to);
  // sum (channels, width) = or += transposed times interleaved.
  void (*multiply)(const T* transposed, const T* interleaved, int64_t count, float* sum, int64_t channels, int64_t width,
                   bool add);
  // to (width, channels) at `stride` = the transpose of sum (channels, width).
  void (*transpose_back)(const float* sum, int64_t channels, int64_t width, float* to, int64_t stride);
};

// Contributions of consecutive voxels to a line: voxel v adds `segment` numbers to the line from v * step on.
struct LineScatter {
  int64_t voxels = 0;
  int64_t from_stride = 0;  // from one voxel's numbers to the next one's
  int64_t segment = 0, step = 0;
};

// Operands of matmuls have type T, memory has type S: both float, both bfloat16, or bfloat16 in memory and float
// matmuls, with weights rounded to bfloat16.
template <typename T, typename S = T>
struct ConvolutionKernel {
  // `to` = (depth, width) of `from` in the layout of add_rows; depth is even for bfloat16. Elements: depth * width.
  void (*pack)(const WeightMatrix& from, int64_t depth, int64_t width, T* to);
  // result[i][0, width) += left[i][0, depth) times a packed panel (depth, width), for i in [0, count).
  void (*add_rows)(const T* const* left, float* const* result, int64_t count, const T* panel, int64_t depth, int64_t width);
  // to[i][0, width) = the leaky ReLU of bias (width; null: 0) plus left[i] times a packed panel (segments' depth, width).
  void (*segment_rows)(const T* const* left, const Segments& segments, int64_t count, const T* panel, const float* bias,
                       float slope, S* const* to, int64_t width);
  // sum (rows, width) at `stride` = or += the sum over i of left[i][0, rows) times right[i][0, width). Null with `transposed`.
  void (*sum_outer)(const T* const* left, const T* const* right, int64_t count, float* sum, int64_t stride, int64_t rows,
                    int64_t width, bool add);
  // to = x where x > 0, slope x elsewhere.
  void (*activate)(const float* x, float slope, int64_t count, S* to);
  // For `rows` rows of `width` channels: gated = grad where out > 0, slope grad elsewhere; sums (width) = the sum of gated rows.
  void (*gate)(const S* grad, const S* out, float slope, int64_t rows, int64_t width, T* gated, float* sums);
  // line += the voxels' contributions; each number of the line is read and written once.
  void (*scatter)(const float* from, const LineScatter& rule, float* line);
  const GatheredRows<T>* gathered = nullptr;       // instead of add_rows for boxes of many channels, if matmuls need it
  const TransposedOuter<T>* transposed = nullptr;  // instead of sum_outer
};

const ConvolutionKernel<float>& convolution_kernel_portable();
const ConvolutionKernel<float>& convolution_kernel_avx2();       // x86-64 only
const ConvolutionKernel<float>& convolution_kernel_avx512();     // x86-64 only
const ConvolutionKernel<Bf16>& convolution_kernel_avx512bf16();  // x86-64 only
const ConvolutionKernel<Bf16>& convolution_kernel_amx();         // x86-64 only
const ConvolutionKernel<float, Bf16>& widened_convolution_kernel_portable();
const ConvolutionKernel<float, Bf16>& widened_convolution_kernel_avx2();    // x86-64 only
const ConvolutionKernel<float, Bf16>& widened_convolution_kernel_avx512();  // x86-64 only

// The table of a set; null for bfloat16 matmuls without fast dot products.
template <typename T, typename S = T>
const ConvolutionKernel<T, S>* convolution_kernel(InstructionSet set);
template <>
const ConvolutionKernel<float>* convolution_kernel<float>(InstructionSet set);
template <>
const ConvolutionKernel<Bf16>* convolution_kernel<Bf16>(InstructionSet set);
template <>
const ConvolutionKernel<float, Bf16>* convolution_kernel<float, Bf16>(InstructionSet set);

}  // namespace welkin::ops
