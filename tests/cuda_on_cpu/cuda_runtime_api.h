// SPDX-License-Identifier: Apache-2.0
// What the kernels of src/ops/cuda use of CUDA, for the host's compiler: here the shipped sources themselves run on a CPU, a
// fiber per thread of a block, blocks one after the other. Between two barriers each warp runs as far as it goes, warps and lanes
// in an order drawn anew, so what needs a barrier that is not there gives wrong numbers; ASan sees accesses out of bounds. The
// launches <<<...>>> become cuda_launch(...) when the build copies a source (sources.cmake).
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

struct CUstream_st;
using cudaStream_t = CUstream_st*;
enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidConfiguration = 9 };

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_size = 1, unsigned y_size = 1, unsigned z_size = 1) : x(x_size), y(y_size), z(z_size) {}
};

#define __global__
#define __device__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ static  // one block runs at a time

namespace welkin::tests {

struct CudaPlace {
  dim3 thread, block, block_size, grid_size;
};

// Of the running thread of a kernel.
const CudaPlace& cuda_place();
void cuda_block_barrier();
// What the lane `distance` away has brought, once all 32 lanes of the warp have called it.
uint64_t cuda_exchange(unsigned mask, uint64_t mine, int distance);

// Runs the grid. What CUDA would not launch is the error that cudaGetLastError() gives next; std::logic_error where threads wait
// at different barriers for ever.
void cuda_run(dim3 grid, dim3 block, const std::function<void()>& kernel);

// cuda_launch(kernel, grid, block, shared bytes, stream)(arguments...): arguments are copied, as CUDA does.
template <typename Kernel>
auto cuda_launch(const Kernel& kernel, dim3 grid, dim3 block, int /*shared_bytes*/, cudaStream_t /*stream*/) {
  return [=](auto... arguments) { cuda_run(grid, block, [&] { kernel(arguments...); }); };
}

}  // namespace welkin::tests

#define threadIdx (welkin::tests::cuda_place().thread)
#define blockIdx (welkin::tests::cuda_place().block)
#define blockDim (welkin::tests::cuda_place().block_size)
#define gridDim (welkin::tests::cuda_place().grid_size)

cudaError_t cudaGetLastError();

inline void __syncthreads() { welkin::tests::cuda_block_barrier(); }

inline float __expf(float x) { return std::exp(x); }
inline float __fdividef(float x, float y) { return x / y; }

template <typename T>
void __stcg(T* to, T value) {
  *to = value;
}

template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int distance) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = welkin::tests::cuda_exchange(mask, bits, distance);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
