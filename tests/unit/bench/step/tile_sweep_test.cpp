// SPDX-License-Identifier: Apache-2.0
#include "bench/step/tile_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace welkin::bench {
namespace {

using testing::HasSubstr;

TEST(BenchTiles, APartlyFilledTileCountsAsOne) {
  const TileProblem problem{.m = 256, .k = 512, .tile = {.rows = 256, .columns = 128}};
  EXPECT_EQ(tile_row(problem, 128).tiles, 1);
  EXPECT_EQ(tile_row(problem, 129).tiles, 2);
  EXPECT_DOUBLE_EQ(tile_row(problem, 128).filled, 1);
  EXPECT_DOUBLE_EQ(tile_row(problem, 192).filled, 0.75);
  EXPECT_EQ(tile_row({.m = 300, .tile = {.rows = 256, .columns = 128}}, 200).tiles, 4);
}

TEST(BenchTiles, AreNamedByRowsAndColumns) {
  const auto tile = parse_tile("256x128");
  ASSERT_TRUE(tile);
  EXPECT_EQ(tile->rows, 256);
  EXPECT_EQ(tile->columns, 128);
  for (const char* const text : {"", "256", "256x", "x128", "256x0", "-1x2", "256x128x2", "256,128"}) {
    EXPECT_FALSE(parse_tile(text)) << text;
  }
  EXPECT_EQ(usual_sizes({.rows = 1, .columns = 16}).front(), 8);
  EXPECT_EQ(usual_sizes({.rows = 1, .columns = 16}).back(), 192);
}

TEST(BenchTiles, RateAndTimeOfAMatmulBelongTogether) {
  const TileProblem problem{.m = 16, .k = 32, .n = {8, 16}, .tile = {.rows = 1, .columns = 16}, .seconds = 0.001};
  const std::vector<TileRow> rows = measure_tiles(problem, c10::kCPU);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].tiles, 16);
  EXPECT_GT(rows[0].seconds, 0);
  EXPECT_DOUBLE_EQ(rows[1].flops_per_second * rows[1].seconds, 2.0 * 16 * 32 * 16);
  EXPECT_THAT(tiles_text(problem, rows), HasSubstr("(16, 32) times (32, n), fp32, tiles of 1x16"));
  EXPECT_EQ(tiles_json(problem, rows).at("matmuls").at(1).at("n"), 16);
  EXPECT_THAT(tiles_svg(problem, rows), HasSubstr("Tiles"));
}

}  // namespace
}  // namespace welkin::bench
