// SPDX-License-Identifier: Apache-2.0
// The process ends by a signal, or by a sanitizer that reports it.
#include "data/check/guarded_heap.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <span>

namespace welkin::data {
namespace {

class GuardedHeapTest : public testing::Test {
 protected:
  GuardedHeapTest() { heap_.open(); }

  std::byte* take(size_t bytes) { return static_cast<std::byte*>(heap_.take(bytes)); }

  GuardedHeap heap_;
};

TEST_F(GuardedHeapTest, BlocksAreZeroAlignedAndKnowTheirSize) {
  for (const size_t bytes : {GuardedHeap::kLeast, size_t{4080}, size_t{4081}, size_t{4096}, size_t{100'000}}) {
    std::byte* const block = take(bytes);
    ASSERT_NE(block, nullptr) << bytes;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % GuardedHeap::kAlignment, 0U);
    EXPECT_EQ(GuardedHeap::size_of(block), bytes);
    EXPECT_TRUE(heap_.owns(block));
    EXPECT_TRUE(std::ranges::all_of(std::span(block, bytes), [](std::byte byte) { return byte == std::byte{0}; }));
    std::ranges::fill(std::span(block, bytes), std::byte{1});
    EXPECT_EQ(GuardedHeap::size_of(block), bytes);
    heap_.give_back(block);
  }
}

TEST_F(GuardedHeapTest, SmallBlocksAreNotItsAffair) {
  EXPECT_EQ(heap_.take(0), nullptr);
  EXPECT_EQ(heap_.take(GuardedHeap::kLeast - 1), nullptr);
  EXPECT_FALSE(heap_.owns(nullptr));
}

TEST_F(GuardedHeapTest, BeforeItIsOpenedItHasNothing) {
  GuardedHeap closed;
  EXPECT_EQ(closed.take(4096), nullptr);
  EXPECT_FALSE(closed.owns(take(4096)));
}

TEST_F(GuardedHeapTest, ItsAddressesComeToAnEnd) {
  EXPECT_EQ(heap_.take(GuardedHeap::kAddresses), nullptr);
  EXPECT_EQ(heap_.take(SIZE_MAX), nullptr);
  for (int i = 0; i < 9; ++i) heap_.take(size_t{1} << 30);
  EXPECT_EQ(heap_.take(size_t{1} << 30), nullptr);
  EXPECT_NE(heap_.take(4096), nullptr);
}

using GuardedHeapDeathTest = GuardedHeapTest;

TEST_F(GuardedHeapDeathTest, BeyondABlockThereIsNothing) {
  volatile std::byte* const block = take(4104);
  EXPECT_DEATH(static_cast<void>(block[4112]), "");
  EXPECT_DEATH(block[4112] = std::byte{1}, "");
}

TEST_F(GuardedHeapDeathTest, WhatWasGivenBackStaysOutOfReach) {
  std::byte* const block = take(600);
  heap_.give_back(block);
  EXPECT_NE(take(600), block);
  EXPECT_DEATH(static_cast<void>(*static_cast<volatile std::byte*>(block)), "");
}

}  // namespace
}  // namespace welkin::data
