// SPDX-License-Identifier: Apache-2.0
// Divides the matmul: each thread packs blocks of rows of the left operand, which stay in its cache, and multiplies them by
// all columns of the right one, which is packed once for all threads. Long sums are made of short ones, by the depth alone.
#include "ops/gemm/amx_matmul.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "core/error.h"
#include "ops/base/aligned_buffer.h"
#include "ops/base/once_differentiable.h"
#include "ops/cpu/matrix/matrix_kernel.h"
#include "ops/gemm/gemm_provider.h"

namespace welkin::ops {
namespace {

constexpr int64_t kMostDepth = 1536;     // depth packed at a time
constexpr int64_t kNearDepth = 256;      // 32 packed columns of this depth stay in a first-level cache
constexpr int64_t kLeftBytes = 1 << 20;  // of a packed block of rows: half a second-level cache
constexpr int64_t kMostRows = 512;       // rows of such a block
constexpr int64_t kLeastRows = 64;
constexpr int64_t kLeastWork = 1 << 22;  // multiplications

int64_t blocks_of(int64_t length, int64_t block) { return (length + block - 1) / block; }
int64_t up_to(int64_t length, int64_t multiple) { return blocks_of(length, multiple) * multiple; }

MatrixOperand operand(const at::Tensor& x, int64_t line_dim) {
  const int64_t line = x.stride(line_dim), depth = x.stride(1 - line_dim);
  const bool across = depth != 1;
  return {x.const_data_ptr<float>(), across ? depth : line, across};
}

struct Matmul {
  MatrixOperand left, right;
  int64_t rows, columns, depth;
  const float* bias;
  float* to;
};

// Rows per block, and number of column groups, which give as many tasks as there are threads.
struct Division {
  int64_t rows, groups;
};

Division division_of(int64_t rows, int64_t depth) {
  const int64_t threads = at::get_num_threads();
  const int64_t fits = kLeftBytes / (packed_tile(depth) / kMatrixTile * static_cast<int64_t>(sizeof(Bf16)));
  const int64_t most = std::clamp(fits / kMatrixBlock * kMatrixBlock, kMatrixBlock, kMostRows);
  const int64_t even = up_to(blocks_of(rows, most), threads);  // equally many for each thread
  const int64_t blocks = rows / even >= kLeastRows ? even : blocks_of(rows, most);
  return {up_to(blocks_of(rows, blocks), kMatrixBlock), std::max<int64_t>(1, threads / blocks)};
}

// Depths [begin, begin + depth) of a matmul.
class DepthsOfMatmul {
 public:
  DepthsOfMatmul(const MatrixKernel& kernel, const Matmul& matmul, int64_t begin, int64_t depth)
      : kernel_(kernel), p_(matmul), begin_(begin), depth_(depth), division_(division_of(matmul.rows, depth)) {}

  void add() {
    const AlignedBuffer<Bf16> right(panels_ * 2 * tile_);
    at::parallel_for(0, panels_, 1, [&](int64_t first, int64_t last) {
      for (int64_t panel = first; panel < last; ++panel) {
        const MatrixOperand columns = p_.right.from(panel * kMatrixBlock, begin_);
        kernel_.pack_right(columns, columns_of(panel), depth_, right.data() + panel * 2 * tile_);
      }
    });
    const int64_t blocks = blocks_of(p_.rows, division_.rows), groups = division_.groups;
    at::parallel_for(0, blocks * groups, 1, [&](int64_t first, int64_t last) {
      // Kept by each thread: memory of this size would be mapped and cleared by the kernel every time.
      static thread_local AlignedBuffer<Bf16> left;
      static thread_local AlignedBuffer<float> sums;
      left.reserve(division_.rows / kMatrixTile * tile_);
      sums.reserve(division_.rows * kMatrixBlock);
      for (int64_t task = first, packed = -1; task < last; ++task) {
        const int64_t row = task / groups * division_.rows;
        const int64_t share = blocks_of(panels_, groups), begin = task % groups * share;
        if (begin >= panels_) continue;
        if (row != packed) kernel_.pack_left(p_.left.from(row, begin_), rows_from(row), depth_, left.data());
        packed = row;
        for (int64_t panel = begin; panel < std::min(panels_, begin + share); ++panel) {
          multiply(left.data(), right.data() + panel * 2 * tile_, row, sums.data());
          write(sums.data(), row, panel);
        }
      }
    });
  }

 private:
  int64_t columns_of(int64_t panel) const { return std::min(kMatrixBlock, p_.columns - panel * kMatrixBlock); }
  int64_t rows_from(int64_t row) const { return std::min(division_.rows, p_.rows - row); }

  void multiply(const Bf16* left, const Bf16* right, int64_t row, float* sums) const {
    for (int64_t d = 0; d < depth_; d += kNearDepth) {
      const int64_t skip = packed_tile(d), rows = up_to(rows_from(row), kMatrixBlock);
      kernel_.multiply(left + skip, right + skip, tile_, rows, std::min(kNearDepth, depth_ - d), /*add=*/d > 0, sums);
    }
  }

  void write(const float* sums, int64_t row, int64_t panel) const {
    const int64_t column = panel * kMatrixBlock;
    kernel_.write(sums, {.rows = rows_from(row),
                         .columns = columns_of(panel),
                         .bias = p_.bias != nullptr && begin_ == 0 ? p_.bias + column : nullptr,
                         .add = begin_ > 0,
                         .to = p_.to + row * p_.columns + column,
                         .stride = p_.columns});
  }

  const MatrixKernel& kernel_;
  const Matmul& p_;
  int64_t begin_, depth_;
  Division division_;
  int64_t tile_ = packed_tile(depth_);
  int64_t panels_ = blocks_of(p_.columns, kMatrixBlock);
};

bool has_dense_dim(const at::Tensor& x) { return x.stride(0) == 1 || x.stride(1) == 1; }

bool is_matrix(const at::Tensor& x) { return x.is_cpu() && x.scalar_type() == at::kFloat && x.dim() == 2; }

}  // namespace

bool amx_matmul_supports(const at::Tensor& a, const at::Tensor& b) {
  return float32_parts() == kMatrixParts && is_matrix(a) && is_matrix(b) && a.size(1) == b.size(0) && has_dense_dim(a) &&
         has_dense_dim(b) && a.size(0) * a.size(1) * b.size(1) >= kLeastWork && matrix_kernel(instruction_set()) != nullptr;
}

at::Tensor amx_matmul(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias) {
  WELKIN_CHECK(amx_matmul_supports(a, b), "matrices that tiles take, of one depth");
  WELKIN_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == b.size(1)), "a bias for each column");
  if (a.requires_grad() || b.requires_grad()) once_differentiable("matmul by tiles");
  const at::Tensor added = bias.defined() ? bias.to(at::kFloat).contiguous() : bias;
  at::Tensor result = at::empty({a.size(0), b.size(1)}, a.options());
  const Matmul matmul{.left = operand(a, 0),
                      .right = operand(b, 1),
                      .rows = a.size(0),
                      .columns = b.size(1),
                      .depth = a.size(1),
                      .bias = added.defined() ? added.const_data_ptr<float>() : nullptr,
                      .to = result.mutable_data_ptr<float>()};
  for (int64_t begin = 0; begin < matmul.depth; begin += kMostDepth) {
    const int64_t depth = std::min(kMostDepth, matmul.depth - begin);
    DepthsOfMatmul(*matrix_kernel(instruction_set()), matmul, begin, depth).add();
  }
  return result;
}

}  // namespace welkin::ops
