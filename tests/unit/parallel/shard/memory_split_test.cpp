// SPDX-License-Identifier: Apache-2.0
// Pieces of a parameter's memory: nearly equal, one after the other, in any order of dims.
#include "parallel/shard/memory_split.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <utility>

#include "core/error.h"

namespace welkin::parallel {
namespace {

using Shape = std::vector<int64_t>;

at::Tensor counted(at::IntArrayRef shape) {
  const at::Tensor zeros = at::zeros(shape);
  return at::arange(zeros.numel(), at::kFloat).view(shape);
}

// The pieces make up the memory.
void expect_whole(const at::Tensor& tensor, const MemorySplit& split) {
  const at::Tensor memory = memory_of(tensor);
  std::vector<at::Tensor> pieces;
  int64_t next = 0;
  for (int64_t member = 0; member < split.members(); ++member) {
    EXPECT_EQ(split.offset(member), next);
    EXPECT_LE(split.numel(member), split.longest());
    const at::Tensor piece = split.piece_of(memory, member);
    EXPECT_EQ(piece.sizes(), split.shape(member));
    EXPECT_TRUE(piece.is_contiguous());
    next += piece.numel();
    pieces.push_back(piece.reshape({-1}));
  }
  EXPECT_TRUE(at::equal(at::cat(pieces), memory));
}

TEST(MemorySplit, CutsAMatrixAtItsRows) {
  const at::Tensor weight = counted({96, 32});
  const MemorySplit split(weight, 4);
  EXPECT_EQ(split.shape(3), (Shape{24, 32}));
  EXPECT_TRUE(split.is_even());
  EXPECT_TRUE(at::equal(split.piece_of(memory_of(weight), 1), weight.narrow(0, 24, 24)));
  expect_whole(weight, split);
}

TEST(MemorySplit, IsUnevenByOneRowWhereRowsDoNotDivide) {
  const at::Tensor weight = counted({130, 3});
  const MemorySplit split(weight, 4);
  EXPECT_EQ(split.shape(0), (Shape{33, 3}));
  EXPECT_EQ(split.shape(3), (Shape{32, 3}));
  EXPECT_FALSE(split.is_even());
  expect_whole(weight, split);
}

TEST(MemorySplit, TakesFurtherDimsWhereRowsAreFew) {
  const at::Tensor tokens = counted({1, 5, 6});
  const MemorySplit split(tokens, 4);
  EXPECT_EQ(split.shape(0), (Shape{8}));
  EXPECT_EQ(split.shape(3), (Shape{7}));
  expect_whole(tokens, split);
}

// As a convolution's weight lies: (taps, in, out) in memory.
TEST(MemorySplit, FollowsTheOrderOfMemory) {
  const at::Tensor weight = counted({4, 4, 4, 3, 8}).permute({4, 3, 0, 1, 2});
  const MemorySplit split(weight, 8);
  EXPECT_EQ(split.shape(0), (Shape{2, 4, 3, 8}));
  expect_whole(weight, split);
  expect_whole(weight, MemorySplit(weight, 3));
}

TEST(MemorySplit, LeavesLastMembersWithoutAPieceOfFewElements) {
  const at::Tensor bias = counted({2});
  const MemorySplit split(bias, 4);
  EXPECT_EQ(split.numel(1), 1);
  EXPECT_EQ(split.shape(2), (Shape{0}));
  expect_whole(bias, split);
  expect_whole(counted({1}), MemorySplit(counted({1}), 2));
  expect_whole(counted({}), MemorySplit(counted({}), 2));
}

TEST(MemorySplit, ExceedsTheMeanByLittle) {
  for (const int64_t members : {2, 3, 4, 7, 8, 64}) {
    for (const Shape& shape : {Shape{4, 4, 4, 64, 65}, Shape{1000, 7}, Shape{3, 5000}}) {
      const MemorySplit split(counted(shape), members);
      const double mean = static_cast<double>(counted(shape).numel()) / static_cast<double>(members);
      EXPECT_LT(static_cast<double>(split.longest()), mean * (1 + 1.0 / 32) + 1) << members;
    }
  }
}

TEST(MemorySplit, RefusesGaps) { EXPECT_THROW(MemorySplit(counted({4, 6}).narrow(1, 0, 3), 2), InternalError); }

}  // namespace
}  // namespace welkin::parallel
