// SPDX-License-Identifier: Apache-2.0
// Matmuls of large float32 matrices with operands in two parts, as plain pointers; torch-free. A number is the sum
// of two bfloat16, which keeps 16 bits of a float's 24. Of the four matmuls the one of the small parts is omitted
// (Henry, Tang and Heinecke 2019, arXiv:1904.06376). Operands are packed block by block for tiles; sums are float32.
#pragma once

#include <cstdint>

#include "ops/base/instruction_set.h"
#include "ops/cpu/lanes/bf16.h"

namespace welkin::ops {

inline constexpr int64_t kMatrixTile = 16;      // rows of a left tile, columns of a right one
inline constexpr int64_t kMatrixDepth = 32;     // depth of both
inline constexpr int64_t kMatrixBlock = 32;     // rows and columns of a block of sums
inline constexpr int64_t kMatrixNumbers = 512;  // of a packed tile
inline constexpr int64_t kMatrixParts = 2;

// An operand as the matmul reads it: lines (rows of the left one, columns of the right one) of equal depth. Either a line is
// contiguous, one `stride` from the next; or, if `across`, the numbers of one depth are.
struct MatrixOperand {
  const float* data = nullptr;
  int64_t stride = 0;
  bool across = false;

  // The operand from this line and depth on.
  MatrixOperand from(int64_t line, int64_t depth) const {
    return {across ? data + depth * stride + line : data + line * stride + depth, stride, across};
  }
};

// Numbers in 16 lines of a packed operand: for every kMatrixDepth of their depth a tile of large parts and one of small parts.
constexpr int64_t packed_tile(int64_t depth) { return (depth + kMatrixDepth - 1) / kMatrixDepth * kMatrixParts * kMatrixNumbers; }

// The end of a block of sums: to (rows, columns) at `stride` = or += the sums, plus the bias (columns; null: none).
struct MatrixResult {
  int64_t rows = 0;
  int64_t columns = 0;  // kMatrixBlock at most
  const float* bias = nullptr;
  bool add = false;
  float* to = nullptr;
  int64_t stride = 0;
};

struct MatrixKernel {
  // Packs lines up to a multiple of kMatrixBlock, one packed_tile() after the other; zero behind the last line and depth.
  void (*pack_left)(const MatrixOperand& from, int64_t lines, int64_t depth, Bf16* to);
  void (*pack_right)(const MatrixOperand& from, int64_t lines, int64_t depth, Bf16* to);
  // sums (rows, kMatrixBlock) = or += packed rows times kMatrixBlock packed columns, of one depth; rows are a multiple of
  // kMatrixBlock. `tile`: numbers from 16 lines to the next ones, for both operands.
  void (*multiply)(const Bf16* left, const Bf16* right, int64_t tile, int64_t rows, int64_t depth, bool add, float* sums);
  void (*write)(const float* sums, const MatrixResult& result);
};

const MatrixKernel& matrix_kernel_amx();  // x86-64 only

// The table of a set; null for sets without tiles.
const MatrixKernel* matrix_kernel(InstructionSet set);

}  // namespace welkin::ops
