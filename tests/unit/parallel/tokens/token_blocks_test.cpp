// SPDX-License-Identifier: Apache-2.0
// Blocks of a grid of patches: every token in one block, whatever the order of the mesh, and back into rows.
#include "parallel/tokens/token_blocks.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <string>

#include "core/error.h"

namespace welkin::parallel {
namespace {

using testing::HasSubstr;

TEST(TokenBlocks, GoToRowsAndBackInEveryOrderOfTheMesh) {
  constexpr int64_t kRows = 5, kColumns = 7;
  const at::Tensor tokens = at::arange(2 * kRows * kColumns * 3).view({2, kRows * kColumns, 3});
  for (const auto& [cp, h, w] :
       {std::array<int64_t, 3>{1, 1, 2}, {1, 2, 2}, {1, 3, 2}, {1, 2, 4}, {1, 5, 7}, {2, 1, 2}, {2, 2, 3}}) {
    for (const char* order : {"cp-w-h-dp", "h-w-cp-dp"}) {
      const Mesh mesh(order, {.cp = cp, .h = h, .w = w});
      const GroupMembers group = mesh.group_of(0, kSampleParts);
      const TokenBlocks blocks = token_blocks(kRows, kColumns, group.ranks, mesh);
      const Lengths lengths = blocks.lengths();
      EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}), kRows * kColumns);
      const at::Tensor by_block = rows_to_blocks(blocks, tokens);
      EXPECT_TRUE(at::equal(blocks_to_rows(blocks, by_block), tokens)) << order << " " << cp << " " << h << " " << w;
      EXPECT_TRUE(at::equal(blocks_to_rows(blocks, by_block.unsqueeze(0), 2), tokens.unsqueeze(0)));
      int64_t first = 0;
      for (const TokenBlock& block : blocks.of_member) {
        EXPECT_TRUE(at::equal(by_block.narrow(1, first, block.num_tokens()), tokens_of_block(block, tokens, kColumns)));
        first += block.num_tokens();
      }
    }
  }
}

TEST(TokenBlocks, AreRowMajor) {
  const Mesh mesh("w-h-dp", {.h = 2, .w = 2});
  const TokenBlocks blocks = token_blocks(3, 5, mesh.group_of(0, kSpatial).ranks, mesh);
  ASSERT_EQ(blocks.of_member.size(), 4U);
  EXPECT_EQ(blocks.of_member[1].rows, (CellRange{0, 1}));
  EXPECT_EQ(blocks.of_member[1].columns, (CellRange{2, 5}));
  const at::Tensor tokens = at::arange(15).view({1, 15});
  EXPECT_TRUE(at::equal(tokens_of_block(blocks.of_member[3], tokens, 5), at::tensor({7, 8, 9, 12, 13, 14}).view({1, 6})));
}

TEST(TokenBlocks, WantARowAndAColumnForEachRank) {
  const Mesh mesh("w-h-dp", {.h = 2, .w = 4});
  try {
    check_blocks(2, 3, mesh);
    FAIL() << "no ConfigError";
  } catch (const ConfigError& error) {
    EXPECT_THAT(std::string(error.what()), HasSubstr("columns=3, w=4. Take at most 3 ranks along w, or smaller patches"));
  }
  EXPECT_NO_THROW(check_blocks(2, 4, mesh));
}

}  // namespace
}  // namespace welkin::parallel
