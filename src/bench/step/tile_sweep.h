// SPDX-License-Identifier: Apache-2.0
// `welkin bench --tiles`: matmuls with one varying size. A processor computes the result tile by tile, so time
// grows by whole tiles: a size with a partly filled last tile costs as much as the next one that fills it.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace welkin::bench {

struct Tile {
  int64_t rows = 1, columns = 1;  // of a tile of the result
};

// On a GPU the lecture's 256 x 128; its libraries use narrower tiles for small results. On a CPU a vector of floats: rows make
// no steps there, since a kernel computes its last rows one by one.
Tile usual_tile(c10::Device device);
// Parses "256x128"; nothing for other texts.
std::optional<Tile> parse_tile(std::string_view text);

// (m, k) times (k, n), for each n.
struct TileProblem {
  int64_t m = 256, k = 512;
  std::vector<int64_t> n{};
  at::ScalarType dtype = at::kFloat;
  Tile tile{};
  double seconds = 0.05;  // for each n; at least three matmuls
};

// Sizes in steps of half a tile, up to twelve tiles.
std::vector<int64_t> usual_sizes(const Tile& tile);

struct TileRow {
  int64_t n = 0, tiles = 0;     // tiles that the result touches
  double filled = 0;            // fraction of the tiles' elements that belong to the result
  double seconds = 0;           // of the fastest matmul
  double flops_per_second = 0;  // 2 m n k
};

// A row without its measured figures.
TileRow tile_row(const TileProblem& problem, int64_t n);
std::vector<TileRow> measure_tiles(const TileProblem& problem, c10::Device device);

std::string tiles_text(const TileProblem& problem, const std::vector<TileRow>& rows);
// Rate, time and number of tiles over n, in panels side by side.
std::string tiles_svg(const TileProblem& problem, const std::vector<TileRow>& rows);
nlohmann::ordered_json tiles_json(const TileProblem& problem, const std::vector<TileRow>& rows);

}  // namespace welkin::bench
