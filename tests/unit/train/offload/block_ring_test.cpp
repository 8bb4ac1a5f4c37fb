// SPDX-License-Identifier: Apache-2.0
// Passes over blocks of a file: each block comes as the last pass left it, whatever is read ahead or on its way back.
#include "train/offload/block_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <stdexcept>

#include "core/error.h"
#include "scratch_folder.h"
#include "train/offload/state_units.h"

namespace welkin::train {
namespace {

// A store of `num` blocks of different lengths, whose bytes are the number of their block.
class Ring {
 public:
  explicit Ring(size_t num, bool in_file = true) : num_(num) {
    const auto take = [this](size_t bytes) { return memory_.take(bytes); };
    if (in_file) {
      store_ = std::make_unique<FileBlocks>(root_.path(), "test values", take);
    } else {
      store_ = std::make_unique<HostBlocks>(take);
    }
    for (size_t block = 0; block < num; ++block) {
      const std::span<std::byte> content = memory_.take((1 + block % 3) * kBlockAlignment);
      std::ranges::fill(content, static_cast<std::byte>(block));
      store_->add(content);
    }
    store_->begin();
  }

  // Adds one to every byte, and expects what `additions` before have made of it.
  void add_one(int additions) {
    size_t next = 0;
    store_->pass([&](size_t block, std::span<std::byte> bytes) {
      EXPECT_EQ(block, next++);
      expect(block, bytes, additions);
      for (std::byte& x : bytes) x = static_cast<std::byte>(static_cast<int>(x) + 1);
    });
    EXPECT_EQ(next, num_);
  }
  static void expect(size_t block, std::span<std::byte> bytes, int additions) {
    const auto wanted = static_cast<std::byte>(static_cast<int>(block) + additions);
    EXPECT_EQ(bytes.size(), (1 + block % 3) * kBlockAlignment);
    EXPECT_TRUE(std::ranges::all_of(bytes, [&](std::byte x) { return x == wanted; })) << block;
  }
  BlockStore& store() { return *store_; }

 private:
  ScratchFolder root_;
  HostBuffers memory_{at::Device(at::kCPU)};
  size_t num_;
  std::unique_ptr<BlockStore> store_;
};

TEST(FileBlocks, ComeAsTheLastPassLeftThem) {
  for (const size_t num : {1, 2, 3, 4, 7}) {
    Ring ring(num);
    for (int pass = 0; pass < 5; ++pass) ring.add_one(pass);
  }
}

TEST(FileBlocks, HoldThreeOfTheLongestInMemory) {
  Ring ring(7);
  EXPECT_EQ(ring.store().memory_bytes(), 3 * 3 * kBlockAlignment);
  EXPECT_EQ(ring.store().bytes(), 13 * kBlockAlignment);
}

TEST(HostBlocks, DoTheSame) {
  Ring ring(4, /*in_file=*/false);
  for (int pass = 0; pass < 3; ++pass) ring.add_one(pass);
  EXPECT_EQ(ring.store().memory_bytes(), ring.store().bytes());
}

TEST(FileBlocks, AreVisitedBetweenPasses) {
  Ring ring(5);
  ring.add_one(0);
  for (const size_t block : {4, 0, 1, 1}) {
    ring.store().visit(block, /*changes=*/false, [](size_t at, std::span<std::byte> bytes) { Ring::expect(at, bytes, 1); });
  }
  const auto add_one = [](size_t, std::span<std::byte> bytes) {
    bytes[0] = static_cast<std::byte>(static_cast<int>(bytes[0]) + 1);
  };
  ring.store().visit(2, /*changes=*/true, add_one);
  ring.store().visit(3, /*changes=*/true, add_one);
  const auto undo = [](size_t, std::span<std::byte> bytes) { bytes[0] = static_cast<std::byte>(static_cast<int>(bytes[0]) - 1); };
  ring.store().visit(2, /*changes=*/true, undo);
  ring.store().visit(3, /*changes=*/true, undo);
  ring.add_one(1);
  ring.add_one(2);
}

// What was being updated is half old and half new: nobody may take it for a state of the run.
TEST(FileBlocks, AreNotUsedAfterAPassThatFailed) {
  Ring ring(4);
  ring.add_one(0);
  const auto fail = [](size_t block, std::span<std::byte>) {
    if (block == 2) throw std::runtime_error("in the middle");
  };
  const auto text_of = [&](auto&& work) -> std::string {
    try {
      work();
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_EQ(text_of([&] { ring.store().pass(fail); }), "in the middle");
  EXPECT_EQ(text_of([&] { ring.add_one(1); }), "in the middle");
  EXPECT_EQ(text_of([&] { ring.store().visit(0, false, fail); }), "in the middle");
}

}  // namespace
}  // namespace welkin::train
