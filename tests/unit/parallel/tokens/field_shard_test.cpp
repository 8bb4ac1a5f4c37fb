// SPDX-License-Identifier: Apache-2.0
// Which rows and rectangles of a field a part of the tokens covers: every token once, and nothing else.
#include "parallel/tokens/field_shard.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "parallel/shard/split.h"

namespace welkin::parallel {
namespace {

TEST(FieldShard, PiecesCoverOwnTokensOnceAndNoOthers) {
  for (const int64_t columns : {1, 5, 7}) {
    for (const int64_t parts : {1, 2, 3, 4, 8}) {
      const int64_t total = 5 * 7 / columns * columns;
      std::vector<int> covered(static_cast<size_t>(total), 0);
      const std::vector<int64_t> lengths = balanced_split(total, parts);
      for (int64_t part = 0; part < parts; ++part) {
        const int64_t first = split_offset(lengths, part);
        const FieldShard share = field_shard(first, lengths[static_cast<size_t>(part)], columns);
        EXPECT_LE(share.own.size(), 3U);
        for (const FieldShard::Piece& piece : share.own) {
          EXPECT_LE(piece.row + piece.rows, share.num_rows);
          for (int64_t row = piece.row; row < piece.row + piece.rows; ++row) {
            for (int64_t column = piece.column; column < piece.column + piece.columns; ++column) {
              const int64_t token = (share.first_row + row) * columns + column;
              EXPECT_GE(token, first);
              EXPECT_LT(token, first + share.num_tokens);
              ++covered[static_cast<size_t>(token)];
            }
          }
        }
      }
      EXPECT_TRUE(std::ranges::all_of(covered, [](int times) { return times == 1; })) << columns << " " << parts;
    }
  }
}

TEST(FieldShard, ReadsNoRowThatItDoesNotNeed) {
  const FieldShard share = field_shard(/*first_token=*/18, /*num_tokens=*/17, /*columns=*/7);  // the second half of 5 x 7
  EXPECT_EQ(share.first_row, 2);
  EXPECT_EQ(share.num_rows, 3);
  EXPECT_EQ(share.first_token, 4);
  EXPECT_EQ(share.num_tokens_read(), 21);
  ASSERT_EQ(share.own.size(), 2U);
  EXPECT_EQ(share.own[0].columns, 3);
  EXPECT_EQ(share.own[1].rows, 2);
}

}  // namespace
}  // namespace welkin::parallel
