// SPDX-License-Identifier: Apache-2.0
// The matmuls that a convolution over channels-last boxes consists of, tap by tap, as plain pointers, and their table per
// instruction set; torch-free. A tap joins voxels of one grid to voxels of another; each voxel is a vector of channels. Only
// pairs that exist are listed, so taps on the padding cost nothing, and nothing is copied into columns. Sums are float.
#pragma once

#include <cstdint>

#include "ops/base/instruction_set.h"
#include "ops/cpu/lanes/bf16.h"

namespace welkin::ops {

inline constexpr int64_t kChannelPanel = 64;     // channels of the result that a call computes at most
inline constexpr int64_t kChannelMultiple = 16;  // widths and depths are multiples of this
inline constexpr int64_t kDepthBlock = 256;      // channels of the operand that a call sums over at most; even
inline constexpr int64_t kLongestColumn = 512;   // that is summed at once; of longer ones the sum is made of short ones
inline constexpr int64_t kGatheredDepth = 512;
inline constexpr int64_t kGatheredRow = 544;       // as kTransposedRow
inline constexpr int64_t kTransposedVoxels = 256;  // of a matmul of TransposedOuter
inline constexpr int64_t kTransposedRow = 288;     // no power of two: such rows push each other out of the cache
inline constexpr int64_t kPairBlock = 64;          // pairs that sum_outer takes at most

// Element (k, n) of a matrix of weights lies at data + k * depth_stride + n * width_stride; one of the strides is 1.
struct WeightMatrix {
  const float* data = nullptr;
  int64_t depth_stride = 0;
  int64_t width_stride = 0;
};

// A row of a left operand that lies in pieces: element d at row + offsets[d / length] + d % length; length is even, and all are
// kLongestColumn at most.
struct Segments {
  const int64_t* offsets = nullptr;
  int64_t count = 0;
  int64_t length = 0;
};

// A block of channels of one tap, for some voxels: their rows, and the packed panel (depth, width) that they are multiplied by.
template <typename T>
struct TapPiece {
  const T* const* rows = nullptr;  // a null row is one of zeros
  int64_t depth = 0;
  const T* panel = nullptr;
};

// Matmuls where the rows of several pieces are brought together first, for all panels that they are multiplied by; pieces are
// kGatheredDepth deep together at most.
template <typename T>
struct GatheredRows {
  // Row i of `to`, at i * kGatheredRow, = the pieces' rows i side by side. There is room for whole blocks of 32 rows.
  void (*gather)(const TapPiece<T>* pieces, int64_t num_pieces, int64_t count, T* to);
  // sums (count, width) += the rows times the pieces' panels.
  void (*add_matmul)(const T* rows, int64_t count, const TapPiece<T>* pieces, int64_t num_pieces, float* sums, int64_t width);
};

// Weight gradients where matmuls read one side channel by channel. To transpose it costs as much as to multiply it with 64
// channels: it is done once for many of the other side. Voxels are kTransposedVoxels at most; up to a multiple of 32 they are
// zero.
template <typename T>
struct TransposedOuter {
  // Element (c, i) of `to`, at c * kTransposedRow + i, = rows[i][c].
  void (*transpose)(const T* const* rows, int64_t count, int64_t channels, T* to);
  // to (voxels / 2, width, 2) = pairs of rows interleaved; a null row is one of zeros.
  void (*interleave)(const T* const* rows, int64_t count, int64_t width, T* to);
  // sum (channels, width) = or += transposed times interleaved.
  void (*multiply)(const T* transposed, const T* interleaved, int64_t count, float* sum, int64_t channels, int64_t width,
                   bool add);
  // to (width, channels) at `stride` = sum (channels, width) the other way round.
  void (*transpose_back)(const float* sum, int64_t channels, int64_t width, float* to, int64_t stride);
};

// What voxels in a row give to a line: voxel v adds `segment` numbers of the line from v * step on.
struct LineScatter {
  int64_t voxels = 0;
  int64_t from_stride = 0;  // from one voxel's numbers to the next one's
  int64_t segment = 0, step = 0;
};

// Operands of matmuls are of type T, what is kept in memory of type S: float for both, bfloat16 for both, or bfloat16 in memory
// that is multiplied as float, where weights are rounded as it would round them.
template <typename T, typename S = T>
struct ConvolutionKernel {
  // `to` = (depth, width) of `from` as add_rows reads it; depth is even for bfloat16. Elements: depth * width.
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
  // line += what the voxels give; each number of the line is read and written once.
  void (*scatter)(const float* from, const LineScatter& rule, float* line);
  const GatheredRows<T>* gathered = nullptr;       // in place of add_rows for boxes of many channels, where matmuls want it so
  const TransposedOuter<T>* transposed = nullptr;  // in place of sum_outer
};

const ConvolutionKernel<float>& convolution_kernel_portable();
const ConvolutionKernel<float>& convolution_kernel_avx2();       // x86-64 only
const ConvolutionKernel<float>& convolution_kernel_avx512();     // x86-64 only
const ConvolutionKernel<Bf16>& convolution_kernel_avx512bf16();  // x86-64 only
const ConvolutionKernel<Bf16>& convolution_kernel_amx();         // x86-64 only
const ConvolutionKernel<float, Bf16>& widened_convolution_kernel_portable();
const ConvolutionKernel<float, Bf16>& widened_convolution_kernel_avx2();    // x86-64 only
const ConvolutionKernel<float, Bf16>& widened_convolution_kernel_avx512();  // x86-64 only

// The table of a set; none (null) for matmuls of bfloat16 without fast dot products of it.
template <typename T, typename S = T>
const ConvolutionKernel<T, S>* convolution_kernel(InstructionSet set);
template <>
const ConvolutionKernel<float>* convolution_kernel<float>(InstructionSet set);
template <>
const ConvolutionKernel<Bf16>* convolution_kernel<Bf16>(InstructionSet set);
template <>
const ConvolutionKernel<float, Bf16>* convolution_kernel<float, Bf16>(InstructionSet set);

}  // namespace welkin::ops
