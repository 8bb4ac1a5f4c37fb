// SPDX-License-Identifier: Apache-2.0
#include "ops/base/large_blocks.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "ops/base/aligned_buffer.h"

namespace welkin::ops {
namespace {

constexpr int64_t kMib = int64_t{1} << 20;

class LargeBlocks : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("THP_MEM_ALLOC_ENABLE", "1", 1);
    if (!use_page_heap()) GTEST_SKIP() << "the address sanitizer, or a limit of addresses, rules it out";
  }
};

TEST_F(LargeBlocks, TensorsFrom2MiBOnLieInTheHeap) {
  const PageHeap::Use before = large_block_use();
  at::Tensor small = at::empty({kMib}, at::kByte);
  EXPECT_EQ(large_block_use().live, before.live);
  at::Tensor large = at::empty({5 * kMib}, at::kByte);
  EXPECT_EQ(large_block_use().live - before.live, static_cast<size_t>(5 * kMib));
  EXPECT_EQ(size_of_cpu_block(large.data_ptr()), static_cast<size_t>(5 * kMib));
  EXPECT_GE(size_of_cpu_block(small.data_ptr()), static_cast<size_t>(kMib));
  const void* place = large.data_ptr();
  large = at::Tensor();
  EXPECT_EQ(large_block_use().live, before.live);
  EXPECT_EQ(at::empty({5 * kMib}, at::kByte).data_ptr(), place);
}

TEST_F(LargeBlocks, RawCallsAndResizesWork) {
  const PageHeap::Use before = large_block_use();
  c10::Allocator* allocator = c10::GetCPUAllocator();
  for (const size_t bytes : {size_t{100}, static_cast<size_t>(3 * kMib)}) {
    void* block = allocator->raw_allocate(bytes);
    EXPECT_GE(size_of_cpu_block(block), bytes);
    allocator->raw_deallocate(block);
  }
  at::Tensor tensor = at::ones({kMib}, at::kFloat);
  tensor.resize_({8 * kMib});
  EXPECT_EQ(tensor[kMib - 1].item<float>(), 1.0F);
  tensor = at::Tensor();
  EXPECT_EQ(at::conv2d(at::ones({1, 8, 256, 256}), at::ones({16, 8, 3, 3})).sum().item<double>(), 72.0 * 16 * 254 * 254);
  EXPECT_EQ(at::empty({0}).numel(), 0);
  EXPECT_EQ(large_block_use().live, before.live);
}

TEST_F(LargeBlocks, BuffersOfKernelsComeFromTheSameHeap) {
  const PageHeap::Use before = large_block_use();
  {
    AlignedBuffer<float> buffer(kMib);
    EXPECT_EQ(large_block_use().live - before.live, static_cast<size_t>(4 * kMib));
    buffer.reserve(2 * kMib);
    EXPECT_EQ(large_block_use().live - before.live, static_cast<size_t>(8 * kMib));
    const AlignedBuffer<float> small(1000);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(small.data()) % 64, 0U);
  }
  EXPECT_EQ(large_block_use().live, before.live);
}

TEST(AlignedBuffer, AfterMemoryThatWasNotThereHasNone) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer ends the process instead";
#endif
  AlignedBuffer<float> buffer(100);
  EXPECT_THROW(buffer.reserve(int64_t{1} << 60), std::bad_alloc);
  EXPECT_NE(buffer.reserve(50), nullptr);
}

}  // namespace
}  // namespace welkin::ops
