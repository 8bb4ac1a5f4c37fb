// SPDX-License-Identifier: Apache-2.0
#include "bench/step/tile_sweep.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <limits>

#include "bench/step/step_report.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "observe/log/table.h"
#include "observe/plot/plot.h"
#include "ops/gemm/mixed_matmul.h"

namespace welkin::bench {
namespace {

constexpr int64_t kHalfTiles = 24;  // of usual_sizes()

int64_t pieces(int64_t size, int64_t piece) { return (size + piece - 1) / piece; }

// Many matmuls per wait: on a GPU one matmul is shorter than a wait.
double fastest_matmul(const at::Tensor& a, const at::Tensor& b, double seconds) {
  const int calls = a.is_cuda() ? 10 : 1;
  const auto multiply = [&](int times) {
    at::Tensor result;
    for (int i = 0; i < times; ++i) result = ops::matmul(ops::matmul_operand(a), ops::matmul_operand(b), a.scalar_type());
    result.flatten().select(0, 0).item<float>();
  };
  multiply(calls);  // pays for set-up
  double best = std::numeric_limits<double>::infinity();
  const Stopwatch budget;
  for (int turn = 0; turn < 3 || budget.seconds() < seconds; ++turn) {
    const Stopwatch watch;
    multiply(calls);
    best = std::min(best, watch.seconds() / calls);
  }
  return best;
}

std::string tile_text(const Tile& tile) { return cat(tile.rows, "x", tile.columns); }

std::string filled_text(double share) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%.0f", 100 * share);
  return text.data();
}

std::string microseconds(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", 1e6 * seconds);
  return text.data();
}

const char* type_name(at::ScalarType type) {
  if (type == at::kBFloat16) return "bf16";
  return type == at::kHalf ? "fp16" : "fp32";
}

std::string heading(const TileProblem& problem) {
  return cat("(", problem.m, ", ", problem.k, ") times (", problem.k, ", n), ", type_name(problem.dtype), ", tiles of ",
             tile_text(problem.tile));
}

}  // namespace

Tile usual_tile(c10::Device device) {
  if (device.is_cuda()) return {.rows = 256, .columns = 128};
  return {.rows = 1, .columns = 16};
}

std::optional<Tile> parse_tile(std::string_view text) {
  Tile tile;
  const char* const end = text.data() + text.size();
  const auto [cross, error] = std::from_chars(text.data(), end, tile.rows);
  if (error != std::errc() || cross == end || *cross != 'x') return std::nullopt;
  const auto [last, second_error] = std::from_chars(cross + 1, end, tile.columns);
  if (second_error != std::errc() || last != end || tile.rows < 1 || tile.columns < 1) return std::nullopt;
  return tile;
}

std::vector<int64_t> usual_sizes(const Tile& tile) {
  const int64_t step = std::max<int64_t>(1, tile.columns / 2);
  std::vector<int64_t> sizes;
  for (int64_t i = 1; i <= kHalfTiles; ++i) sizes.push_back(i * step);
  return sizes;
}

TileRow tile_row(const TileProblem& problem, int64_t n) {
  TileRow row;
  row.n = n;
  row.tiles = pieces(problem.m, problem.tile.rows) * pieces(n, problem.tile.columns);
  row.filled = static_cast<double>(problem.m * n) / static_cast<double>(row.tiles * problem.tile.rows * problem.tile.columns);
  return row;
}

std::vector<TileRow> measure_tiles(const TileProblem& problem, c10::Device device) {
  const at::NoGradGuard no_grad;
  const auto options = at::TensorOptions(problem.dtype).device(device);
  const at::Tensor a = at::ones({problem.m, problem.k}, options);
  std::vector<TileRow> rows;
  for (const int64_t n : problem.n) {
    TileRow row = tile_row(problem, n);
    row.seconds = fastest_matmul(a, at::ones({problem.k, n}, options), problem.seconds);
    row.flops_per_second = 2 * static_cast<double>(problem.m * problem.k) * static_cast<double>(n) / row.seconds;
    rows.push_back(row);
  }
  return rows;
}

std::string tiles_text(const TileProblem& problem, const std::vector<TileRow>& rows) {
  using enum observe::Align;
  observe::Table table({{"n", Right}, {"tiles", Right}, {"filled %", Right}, {"us", Right}, {"rate", Right}});
  for (const TileRow& row : rows) {
    table.add_row(
        {cat(row.n), cat(row.tiles), filled_text(row.filled), microseconds(row.seconds), format_flops(row.flops_per_second)});
  }
  return cat(heading(problem), "\n", table.text());
}

std::string tiles_svg(const TileProblem& problem, const std::vector<TileRow>& rows) {
  observe::Curve rate, time, tiles;
  for (const TileRow& row : rows) {
    for (observe::Curve* curve : {&rate, &time, &tiles}) curve->x.push_back(static_cast<double>(row.n));
    rate.y.push_back(row.flops_per_second / 1e9);
    time.y.push_back(row.seconds * 1e6);
    tiles.y.push_back(static_cast<double>(row.tiles));
  }
  const auto plot = [](const char* title, std::string unit, observe::Curve curve) {
    return observe::LinePlot{.title = title,
                             .x = {.title = "n"},
                             .y = {.title = std::move(unit), .low = 0},
                             .curves = {std::move(curve)},
                             .width = 520,
                             .height = 360};
  };
  return observe::svg_row({plot("Rate", "GFLOP/s", std::move(rate)), plot("Time", "microseconds", std::move(time)),
                           plot("Tiles", cat(tile_text(problem.tile), " of the result"), std::move(tiles))});
}

nlohmann::ordered_json tiles_json(const TileProblem& problem, const std::vector<TileRow>& rows) {
  nlohmann::ordered_json json{{"mode", "tiles"},
                              {"m", problem.m},
                              {"k", problem.k},
                              {"type", type_name(problem.dtype)},
                              {"tile", tile_text(problem.tile)}};
  for (const TileRow& row : rows) {
    json["matmuls"].push_back({{"n", row.n},
                               {"tiles", row.tiles},
                               {"filled", row.filled},
                               {"seconds", row.seconds},
                               {"flops_per_s", row.flops_per_second}});
  }
  return json;
}

}  // namespace welkin::bench
