// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels of ops/norm/residual_norm.h: a warp per row. Rows of up to 2048 columns, in packs of four, stay in
// registers, so each matrix is read once. Up to 1536 columns the same pass sums the gradients of weight and bias; more columns
// would need more than 255 registers. Other rows are reread from the caches.
#include "ops/cuda/chunk_sums.cuh"
#include "ops/cuda/pack.cuh"
#include "ops/cuda/residual_norm.h"

namespace welkin::ops {
namespace {

constexpr int64_t kMostNormBlocks = 65536;
constexpr int kNormPack = 4;
constexpr int kPackedColumns = kNormLanes * kNormPack;  // that a warp has at once

// Gives the same bits in every lane: a sum of two does not depend on their order.
__device__ float lane_sum(float value) {
  for (int distance = kNormLanes / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(0xFFFFFFFFU, value, distance);
  return value;
}

template <typename Low>
__global__ void norm_forward_kernel(NormForward<Low> call) {
  const int lane = static_cast<int>(threadIdx.x);
  for (int64_t row = blockIdx.x * int64_t{kNormRows} + threadIdx.y; row < call.rows; row += gridDim.x * int64_t{kNormRows}) {
    const float mean = lane_sum(add_share(call, row, lane)) / static_cast<float>(call.width);
    const float rstd = rstd_of(lane_sum(deviation_share(call, row, mean, lane)), call.width, call.epsilon);
    norm_share(call, row, mean, rstd, lane);
  }
}

// Rows of at most Packs times kPackedColumns.
template <int Packs, typename Low>
__global__ void packed_forward_kernel(NormForward<Low> call) {
  const int lane = static_cast<int>(threadIdx.x);
  for (int64_t row = blockIdx.x * int64_t{kNormRows} + threadIdx.y; row < call.rows; row += gridDim.x * int64_t{kNormRows}) {
    const int64_t begin = row * call.width;
    Pack<float, kNormPack> sum[Packs];
    float total = 0;
#pragma unroll
    for (int p = 0; p < Packs; ++p) {
      const int64_t column = p * kPackedColumns + lane * kNormPack;
      if (column >= call.width) continue;
      sum[p] = load_pack<kNormPack>(call.x + begin + column);
      if (call.branch != nullptr) {
        const auto branch = load_pack<kNormPack>(call.branch + begin + column);
#pragma unroll
        for (int k = 0; k < kNormPack; ++k) sum[p].lane[k] += static_cast<float>(branch.lane[k]);
        store_pack(sum[p], call.sum + begin + column);
      }
#pragma unroll
      for (int k = 0; k < kNormPack; ++k) total += sum[p].lane[k];
    }
    const float mean = lane_sum(total) / static_cast<float>(call.width);
    float squares = 0;
#pragma unroll
    for (int p = 0; p < Packs; ++p) {
      if (p * kPackedColumns + lane * kNormPack >= call.width) continue;
#pragma unroll
      for (int k = 0; k < kNormPack; ++k) squares += (sum[p].lane[k] - mean) * (sum[p].lane[k] - mean);
    }
    const float rstd = rstd_of(lane_sum(squares), call.width, call.epsilon);
#pragma unroll
    for (int p = 0; p < Packs; ++p) {
      const int64_t column = p * kPackedColumns + lane * kNormPack;
      if (column >= call.width) continue;
      const auto weight = load_pack<kNormPack>(call.weight + column);
      const auto bias = load_pack<kNormPack>(call.bias + column);
      Pack<Low, kNormPack> normed;
#pragma unroll
      for (int k = 0; k < kNormPack; ++k) {
        normed.lane[k] = static_cast<Low>((sum[p].lane[k] - mean) * rstd * weight.lane[k] + bias.lane[k]);
      }
      store_pack(normed, call.normed + begin + column);
    }
    if (lane == 0) {
      call.mean[row] = mean;
      call.rstd[row] = rstd;
    }
  }
}

template <typename Low>
__global__ void norm_backward_kernel(NormBackward<Low> call) {
  const int lane = static_cast<int>(threadIdx.x);
  for (int64_t row = blockIdx.x * int64_t{kNormRows} + threadIdx.y; row < call.rows; row += gridDim.x * int64_t{kNormRows}) {
    NormSums sums = gradient_share(call, row, lane);
    sums = {lane_sum(sums.plain), lane_sum(sums.scaled)};
    backward_share(call, row, sums, lane);
  }
}

// A lane's part of a row: the gradient times the weight, and the normalised values.
template <int Packs>
struct PackedRow {
  Pack<float, kNormPack> gradient[Packs], normed[Packs];
  float mean = 0, rstd = 0;
};

// A lane's columns of the gradients of weight and bias.
template <int Packs>
struct PackedSums {
  Pack<float, kNormPack> weight[Packs] = {}, bias[Packs] = {};
};
template <>
struct PackedSums<0> {};

// Reads a row, adds to the column sums if requested, and returns the lane's part of the sums over the row.
template <int Packs, bool SumsColumns, typename Low>
__device__ __forceinline__ NormSums read_row(const NormBackward<Low>& call, int64_t row, int lane, PackedRow<Packs>& out,
                                             PackedSums<SumsColumns ? Packs : 0>& columns) {
  out.mean = call.mean[row];
  out.rstd = call.rstd[row];
  NormSums sums;
#pragma unroll
  for (int p = 0; p < Packs; ++p) {
    const int64_t column = p * kPackedColumns + lane * kNormPack;
    if (column >= call.width) continue;
    const auto grad_normed = load_pack<kNormPack>(call.grad_normed + row * call.width + column);
    const auto sum = load_pack<kNormPack>(call.sum + row * call.width + column);
    const auto weight = load_pack<kNormPack>(call.weight + column);
#pragma unroll
    for (int k = 0; k < kNormPack; ++k) {
      const auto gradient = static_cast<float>(grad_normed.lane[k]);
      const float normed = (sum.lane[k] - out.mean) * out.rstd;
      if constexpr (SumsColumns) {
        columns.weight[p].lane[k] += gradient * normed;
        columns.bias[p].lane[k] += gradient;
      }
      out.gradient[p].lane[k] = gradient * weight.lane[k];
      out.normed[p].lane[k] = normed;
      sums.plain += out.gradient[p].lane[k];
      sums.scaled += out.gradient[p].lane[k] * normed;
    }
  }
  return sums;
}

template <int Packs, typename Low>
__device__ __forceinline__ void write_row(const NormBackward<Low>& call, int64_t row, int lane, const PackedRow<Packs>& in,
                                          NormSums sums) {
  const float share = 1 / static_cast<float>(call.width);
#pragma unroll
  for (int p = 0; p < Packs; ++p) {
    const int64_t column = p * kPackedColumns + lane * kNormPack, i = row * call.width + column;
    if (column >= call.width) continue;
    Pack<float, kNormPack> grad_x = {};
    if (call.of_sum != nullptr) grad_x = load_pack<kNormPack>(call.of_sum + i);
    Pack<Low, kNormPack> grad_branch;
#pragma unroll
    for (int k = 0; k < kNormPack; ++k) {
      grad_x.lane[k] += in.rstd * (in.gradient[p].lane[k] - share * sums.plain - in.normed[p].lane[k] * share * sums.scaled);
      grad_branch.lane[k] = static_cast<Low>(grad_x.lane[k]);
    }
    store_pack(grad_x, call.grad_x + i);
    if (call.grad_branch != nullptr) store_pack(grad_branch, call.grad_branch + i);
  }
}

// One block per chunk of rows.
template <int Packs, bool SumsColumns, typename Low>
__global__ void __launch_bounds__(kNormRows* kNormLanes) packed_backward_kernel(NormBackward<Low> call, float* partials) {
  const int lane = static_cast<int>(threadIdx.x), first = static_cast<int>(threadIdx.y);
  const int64_t chunk = blockIdx.x, length = norm_chunk(call.rows), begin = chunk * length;
  const int64_t end = begin + length < call.rows ? begin + length : call.rows;
  PackedSums<SumsColumns ? Packs : 0> columns;
  for (int64_t row = begin + first; row < end; row += kNormRows) {
    PackedRow<Packs> values;
    const NormSums sums = read_row<Packs, SumsColumns>(call, row, lane, values, columns);
    write_row<Packs>(call, row, lane, values, {lane_sum(sums.plain), lane_sum(sums.scaled)});
  }
  if constexpr (SumsColumns) {
    // Sums over the warps, a pack at a time: thread t sums column t of the 128 of the weight, then of the bias.
    __shared__ float shares[kNormRows][2][kPackedColumns];
    const int thread = first * kNormLanes + lane, which = thread / kPackedColumns, place = thread % kPackedColumns;
#pragma unroll
    for (int p = 0; p < Packs; ++p) {
#pragma unroll
      for (int k = 0; k < kNormPack; ++k) {
        shares[first][0][lane * kNormPack + k] = columns.weight[p].lane[k];
        shares[first][1][lane * kNormPack + k] = columns.bias[p].lane[k];
      }
      __syncthreads();
      float total = 0;
      for (const auto& warp : shares) total += warp[which][place];
      const int64_t column = p * kPackedColumns + place;
      if (column < call.width) partials[(chunk * 2 + which) * call.width + column] = total;
      __syncthreads();  // before the partial sums of the next pack
    }
  }
}
static_assert(kNormRows * kNormLanes == 2 * kPackedColumns);

template <typename Low>
__global__ void norm_columns_kernel(NormBackward<Low> call, float* partials) {
  __shared__ ColumnSums shares[kNormRows][kNormLanes];
  const int lane = static_cast<int>(threadIdx.x), first = static_cast<int>(threadIdx.y);
  const int64_t column = blockIdx.x * int64_t{kNormLanes} + lane, chunk = blockIdx.y;
  if (column < call.width) shares[first][lane] = column_share(call, chunk, column, first);
  __syncthreads();
  if (first != 0 || column >= call.width) return;
  ColumnSums total;
  for (const auto& row : shares) {
    total.weight += row[lane].weight;
    total.bias += row[lane].bias;
  }
  partials[chunk * 2 * call.width + column] = total.weight;
  partials[(chunk * 2 + 1) * call.width + column] = total.bias;
}

unsigned blocks_for_rows(int64_t rows) {
  const int64_t wanted = (rows + kNormRows - 1) / kNormRows;
  return static_cast<unsigned>(wanted < kMostNormBlocks ? wanted : kMostNormBlocks);
}

const dim3 kNormBlock(kNormLanes, kNormRows);

template <int Packs, typename Low>
cudaError_t launch_packed_forward(const NormForward<Low>& call, cudaStream_t stream) {
  packed_forward_kernel<Packs><<<blocks_for_rows(call.rows), kNormBlock, 0, stream>>>(call);
  return cudaGetLastError();
}

template <int Packs, bool SumsColumns, typename Low>
cudaError_t launch_packed_backward(const NormBackward<Low>& call, float* partials, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(norm_chunks(call.rows));
  packed_backward_kernel<Packs, SumsColumns><<<blocks, kNormBlock, 0, stream>>>(call, partials);
  return cudaGetLastError();
}

template <typename Low>
cudaError_t launch_columns(const NormBackward<Low>& call, float* partials, cudaStream_t stream) {
  const auto columns = static_cast<unsigned>((call.width + kNormLanes - 1) / kNormLanes);
  const dim3 grid(columns, static_cast<unsigned>(norm_chunks(call.rows)));
  norm_columns_kernel<<<grid, kNormBlock, 0, stream>>>(call, partials);
  return cudaGetLastError();
}

// Gradients of the inputs, and the chunks' sums of the gradients of weight and bias.
template <typename Low>
cudaError_t launch_rows_and_chunks(const NormBackward<Low>& call, float* partials, cudaStream_t stream) {
  const bool is_packed =
      call.width <= 16 * kPackedColumns &&
      are_of_packs<kNormPack>(call.width, call.grad_normed, call.of_sum, call.sum, call.weight, call.grad_x, call.grad_branch);
  if (is_packed && call.width <= 4 * kPackedColumns) return launch_packed_backward<4, true>(call, partials, stream);
  if (is_packed && call.width <= 8 * kPackedColumns) return launch_packed_backward<8, true>(call, partials, stream);
  if (is_packed && call.width <= 12 * kPackedColumns) return launch_packed_backward<12, true>(call, partials, stream);
  cudaError_t error = cudaSuccess;
  if (is_packed) {
    error = launch_packed_backward<16, false>(call, partials, stream);
  } else {
    norm_backward_kernel<<<blocks_for_rows(call.rows), kNormBlock, 0, stream>>>(call);
    error = cudaGetLastError();
  }
  return error == cudaSuccess ? launch_columns(call, partials, stream) : error;
}

}  // namespace

template <typename Low>
cudaError_t launch_norm_forward(const NormForward<Low>& call, cudaStream_t stream) {
  if (are_of_packs<kNormPack>(call.width, call.x, call.branch, call.weight, call.bias, call.sum, call.normed)) {
    if (call.width <= 4 * kPackedColumns) return launch_packed_forward<4>(call, stream);
    if (call.width <= 8 * kPackedColumns) return launch_packed_forward<8>(call, stream);
    if (call.width <= 12 * kPackedColumns) return launch_packed_forward<12>(call, stream);
    if (call.width <= 16 * kPackedColumns) return launch_packed_forward<16>(call, stream);
  }
  norm_forward_kernel<<<blocks_for_rows(call.rows), kNormBlock, 0, stream>>>(call);
  return cudaGetLastError();
}

template <typename Low>
cudaError_t launch_norm_backward(const NormBackward<Low>& call, float* partials, float* of_parameters, cudaStream_t stream) {
  if (const cudaError_t error = launch_rows_and_chunks(call, partials, stream); error != cudaSuccess) return error;
  return launch_chunk_sums(partials, norm_chunks(call.rows), 2 * call.width, of_parameters, stream);
}

template cudaError_t launch_norm_forward(const NormForward<float>&, cudaStream_t);
template cudaError_t launch_norm_forward(const NormForward<__half>&, cudaStream_t);
template cudaError_t launch_norm_forward(const NormForward<__nv_bfloat16>&, cudaStream_t);
template cudaError_t launch_norm_backward(const NormBackward<float>&, float*, float*, cudaStream_t);
template cudaError_t launch_norm_backward(const NormBackward<__half>&, float*, float*, cudaStream_t);
template cudaError_t launch_norm_backward(const NormBackward<__nv_bfloat16>&, float*, float*, cudaStream_t);

}  // namespace welkin::ops
