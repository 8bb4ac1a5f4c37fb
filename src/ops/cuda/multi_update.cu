// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels of ops/update/device_update.h: a block per piece of a tensor, all tensors of a table in one launch.
#include "ops/cuda/multi_update.h"

namespace welkin::ops {
namespace {

constexpr int kNormThreads = 1024;  // of the single block that adds the others' sums

__global__ void prepare_adam(AdamSettings settings, ScalarPointers in, PreparedRule<AdamRule>* out) {
  *out = prepared_rule(settings, *in.rate, *in.steps, *in.gradient_scale, *in.found_inf);
}

__global__ void prepare_sgd(SgdSettings settings, ScalarPointers in, PreparedRule<SgdRule>* out) {
  *out = prepared_rule(settings, *in.rate, *in.gradient_scale, *in.found_inf);
}

template <typename Rule>
__global__ void __launch_bounds__(kUpdateThreads)
    update_kernel(const __grid_constant__ UpdateTable table, const PreparedRule<Rule>* prepared) {
  update_share(*prepared, piece_at(table, static_cast<int32_t>(blockIdx.x)), static_cast<int>(threadIdx.x), kUpdateThreads);
}

// The sum of the threads' numbers, returned to thread 0; undefined for the others.
template <int Threads>
__device__ double block_sum(double mine) {
  __shared__ double sums[Threads];
  const int thread = static_cast<int>(threadIdx.x);
  sums[thread] = mine;
  for (int width = Threads / 2; width > 0; width /= 2) {
    __syncthreads();
    add_halves(sums, thread, width);
  }
  return thread == 0 ? sums[0] : 0;
}

__global__ void __launch_bounds__(kUpdateThreads) square_kernel(const __grid_constant__ UpdateTable table, double* partials) {
  const int thread = static_cast<int>(threadIdx.x);
  const UpdatePiece piece = piece_at(table, static_cast<int32_t>(blockIdx.x));
  const double total = block_sum<kUpdateThreads>(square_share(piece, thread, kUpdateThreads));
  if (thread == 0) partials[blockIdx.x] = total;
}

__global__ void __launch_bounds__(kNormThreads) norm_kernel(const double* partials, int64_t count, float* norm) {
  const int thread = static_cast<int>(threadIdx.x);
  const double total = block_sum<kNormThreads>(partial_share(partials, count, thread, kNormThreads));
  if (thread == 0) *norm = static_cast<float>(sqrt(total));
}

template <typename Rule>
cudaError_t launch_rule(const UpdateTable& table, const PreparedRule<Rule>* rule, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(table.first_piece[table.num_tensors]);
  update_kernel<<<blocks, kUpdateThreads, 0, stream>>>(table, rule);
  return cudaGetLastError();
}

}  // namespace

cudaError_t prepare_update(const AdamSettings& settings, const ScalarPointers& scalars, PreparedRule<AdamRule>* out,
                           cudaStream_t stream) {
  prepare_adam<<<1, 1, 0, stream>>>(settings, scalars, out);
  return cudaGetLastError();
}

cudaError_t prepare_update(const SgdSettings& settings, const ScalarPointers& scalars, PreparedRule<SgdRule>* out,
                           cudaStream_t stream) {
  prepare_sgd<<<1, 1, 0, stream>>>(settings, scalars, out);
  return cudaGetLastError();
}

cudaError_t launch_update(const UpdateTable& table, const PreparedRule<AdamRule>* rule, cudaStream_t stream) {
  return launch_rule(table, rule, stream);
}

cudaError_t launch_update(const UpdateTable& table, const PreparedRule<SgdRule>* rule, cudaStream_t stream) {
  return launch_rule(table, rule, stream);
}

cudaError_t launch_square_sums(const UpdateTable& table, double* partials, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(table.first_piece[table.num_tensors]);
  square_kernel<<<blocks, kUpdateThreads, 0, stream>>>(table, partials);
  return cudaGetLastError();
}

cudaError_t launch_norm(const double* partials, int64_t count, float* norm, cudaStream_t stream) {
  norm_kernel<<<1, kNormThreads, 0, stream>>>(partials, count, norm);
  return cudaGetLastError();
}

}  // namespace welkin::ops
