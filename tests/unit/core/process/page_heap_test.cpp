// SPDX-License-Identifier: Apache-2.0
#include "core/process/page_heap.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "core/philox.h"

namespace welkin {
namespace {

constexpr size_t kMib = size_t{1} << 20;

int64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

TEST(PageHeap, BlocksDoNotOverlapAndKeepWhatIsWritten) {
  const auto heap = PageHeap::reserve(256 * kMib);
  ASSERT_NE(heap, nullptr);
  struct Block {
    unsigned char* data;
    size_t bytes;
    unsigned char mark;
  };
  std::vector<Block> blocks;
  size_t live = 0;
  for (uint64_t i = 0; i < 4000; ++i) {
    const PhiloxBlock random = philox(7, 0, i);
    if (blocks.size() < 12 && random[0] % 2 == 0) {
      const size_t bytes = 1 + random[1] % (6 * kMib);
      auto* data = static_cast<unsigned char*>(heap->take(bytes));
      ASSERT_NE(data, nullptr);
      ASSERT_TRUE(heap->holds(data));
      ASSERT_GE(heap->size_of(data), bytes);
      ASSERT_LT(heap->size_of(data), bytes + 4096);
      const auto mark = static_cast<unsigned char>(random[2]);
      std::memset(data, mark, 64);
      std::memset(data + bytes - 1, mark, 1);
      blocks.push_back({data, bytes, mark});
      live += heap->size_of(data);
    } else if (!blocks.empty()) {
      const size_t which = random[3] % blocks.size();
      const Block block = blocks[which];
      for (size_t at = 0; at < std::min<size_t>(64, block.bytes - 1); ++at) ASSERT_EQ(block.data[at], block.mark);
      ASSERT_EQ(block.data[block.bytes - 1], block.mark);
      live -= heap->size_of(block.data);
      heap->give_back(block.data);
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(which));
    }
    ASSERT_EQ(heap->use().live, live);
  }
}

TEST(PageHeap, FreeNeighboursAreOneRange) {
  const auto heap = PageHeap::reserve(16 * kMib);
  ASSERT_NE(heap, nullptr);
  void* parts[4];
  for (void*& part : parts) part = heap->take(4 * kMib);
  EXPECT_EQ(heap->take(1), nullptr) << "the range is full";
  for (const int which : {2, 0, 1, 3}) heap->give_back(parts[which]);
  EXPECT_EQ(heap->take(16 * kMib), parts[0]);
}

TEST(PageHeap, WhatIsGivenBackIsTakenAgainWithoutTheKernel) {
  const auto heap = PageHeap::reserve(256 * kMib);
  ASSERT_NE(heap, nullptr);
  const auto step = [&] {
    std::vector<void*> blocks;
    for (const size_t mib : {3, 40, 7, 64}) {
      blocks.push_back(heap->take(mib * kMib));
      std::memset(blocks.back(), 1, mib * kMib);
    }
    for (void* block : blocks) heap->give_back(block);
  };
  step();
  const int64_t before = page_faults();
  step();
  EXPECT_LT(page_faults() - before, 8) << "114 MiB are 57 huge pages, or 29184 small ones";
}

// Gaps that nothing fits into would otherwise add up beside what grows.
TEST(PageHeap, ResidentMemoryStaysNearTheMostThatWasLive) {
  const auto heap = PageHeap::reserve(4096 * kMib);
  ASSERT_NE(heap, nullptr);
  std::vector<void*> kept;
  for (size_t mib = 8; mib <= 80; mib += 8) {  // each too large for what was given back before
    void* passing = heap->take(2 * mib * kMib);
    kept.push_back(heap->take(4 * kMib));
    heap->give_back(passing);
  }
  const PageHeap::Use use = heap->use();
  EXPECT_LE(use.resident, use.most_live + use.most_live / 32 + 34 * kMib);
  EXPECT_GE(use.resident, use.live);
  for (void* block : kept) heap->give_back(block);
  EXPECT_EQ(heap->use().live, 0U);
}

TEST(PageHeap, TrimsWhatIsFree) {
  const auto heap = PageHeap::reserve(256 * kMib);
  ASSERT_NE(heap, nullptr);
  auto* kept = static_cast<unsigned char*>(heap->take(5 * kMib));
  void* passing = heap->take(100 * kMib);
  std::memset(kept, 7, 5 * kMib);
  std::memset(passing, 7, 100 * kMib);
  heap->give_back(passing);
  heap->trim();
  EXPECT_EQ(heap->use().most_live, 5 * kMib);
  EXPECT_LE(heap->use().resident, 6 * kMib);
  EXPECT_EQ(kept[5 * kMib - 1], 7);
  auto* again = static_cast<unsigned char*>(heap->take(100 * kMib));
  EXPECT_EQ(again[50 * kMib], 0) << "fresh pages";
}

TEST(PageHeap, RefusesWhatDoesNotFit) {
  const auto heap = PageHeap::reserve(4 * kMib);
  ASSERT_NE(heap, nullptr);
  EXPECT_EQ(heap->take(0), nullptr);
  EXPECT_EQ(heap->take(5 * kMib), nullptr);
  EXPECT_EQ(heap->take(~size_t{0}), nullptr);
  EXPECT_NE(heap->take(4 * kMib), nullptr);
  int outside = 0;
  EXPECT_FALSE(heap->holds(&outside));
}

}  // namespace
}  // namespace welkin
