// SPDX-License-Identifier: Apache-2.0
// What runs CUDA kernels on a CPU: places, barriers, shuffles, and that it sees a barrier that is missing.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>
#include <vector>

namespace welkin::tests {
namespace {

constexpr int kThreads = 64;

// Each thread takes its neighbour's number from what the block shares, twice.
void pass_on(bool waits_between, int* out) {
  __shared__ int shared[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  shared[thread] = thread;
  if (waits_between) __syncthreads();
  const int first = shared[(thread + 1) % kThreads];
  __syncthreads();
  shared[thread] = 10 * first;
  if (waits_between) __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = shared[(thread + 1) % kThreads];
}

std::vector<int> passed_on(bool waits_between) {
  std::vector<int> out(3 * kThreads, -1);
  cuda_launch(pass_on, 3, kThreads, 0, nullptr)(waits_between, out.data());
  return out;
}

TEST(GridRunner, ThreadsWaitForEachOther) {
  const std::vector<int> out = passed_on(true);
  for (int i = 0; i < 3 * kThreads; ++i) EXPECT_EQ(out[static_cast<size_t>(i)], 10 * ((i + 2) % kThreads)) << i;
}

TEST(GridRunner, AMissingBarrierGivesWrongNumbers) { EXPECT_NE(passed_on(false), passed_on(true)); }

TEST(GridRunner, PlacesAreThoseOfTheGrid) {
  std::vector<int> visits(2 * 3 * 4 * 5 * 6, 0);
  const auto visit = [](int* count) {
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    ++count[(block * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x];
  };
  cuda_launch(visit, dim3(2, 3, 4), dim3(5, 6), 0, nullptr)(visits.data());
  EXPECT_EQ(visits, std::vector<int>(visits.size(), 1));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(GridRunner, ShufflesSumAWarp) {
  std::vector<double> sums(96, 0);
  const auto sum = [](double* out) {
    double value = threadIdx.x + 100.0 * threadIdx.y;
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xFFFFFFFFU, value, distance);
    out[threadIdx.y * 32 + threadIdx.x] = value;
  };
  cuda_launch(sum, 1, dim3(32, 3), 0, nullptr)(sums.data());
  for (size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i], 31 * 16 + 3200.0 * static_cast<double>(i / 32));
}

TEST(GridRunner, RefusesWhatCudaWouldNotLaunch) {
  int runs = 0;
  const auto run = [](int* count) { ++*count; };
  for (const auto& [grid, block] : {std::pair<dim3, dim3>{0, 32}, {1, 0}, {1, 1025}, {dim3(1, 65536), 32}, {1, dim3(64, 32)}}) {
    cuda_launch(run, grid, block, 0, nullptr)(&runs);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "told once";
  }
  EXPECT_EQ(runs, 0);
}

TEST(GridRunner, BarriersThatNeverMeetAreAnError) {
  const auto half_shuffles = [](int) {
    if (threadIdx.x < 16) __shfl_xor_sync(0xFFFFFFFFU, 1.0F, 1);
  };
  EXPECT_THROW(cuda_launch(half_shuffles, 1, 32, 0, nullptr)(0), std::logic_error);
}

}  // namespace
}  // namespace welkin::tests
