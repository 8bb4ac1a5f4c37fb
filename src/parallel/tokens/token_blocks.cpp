// SPDX-License-Identifier: Apache-2.0
#include "parallel/tokens/token_blocks.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace welkin::parallel {
namespace {

// cp cuts rows further.
constexpr AxisSet kRowAxes = Axis::Cp | Axis::H;

void check_cut(const char* name, int64_t patches, AxisSet axes, const Mesh& mesh) {
  const int64_t ranks = mesh.size(axes);
  if (ranks <= patches) return;
  const std::string cut = axes_text(mesh.size(Axis::Cp) > 1 || axes != kRowAxes ? axes : AxisSet(Axis::H));
  throw ConfigError("parallel",
                    cat("fewer ", name, " of patches than ranks to share them: ", name, "=", patches, ", ", cut, "=", ranks),
                    cat("Take at most ", patches, " ranks along ", cut, ", or smaller patches"));
}

int64_t columns_of(const TokenBlocks& blocks) {
  int64_t columns = 0;
  for (const TokenBlock& block : blocks.of_member) columns = std::max(columns, block.columns.end);
  return columns;
}

}  // namespace

Lengths TokenBlocks::lengths() const {
  Lengths lengths;
  for (const TokenBlock& block : of_member) lengths.push_back(block.num_tokens());
  return lengths;
}

void check_blocks(int64_t rows, int64_t columns, const Mesh& mesh) {
  check_cut("rows", rows, kRowAxes, mesh);
  check_cut("columns", columns, Axis::W, mesh);
}

TokenBlocks token_blocks(int64_t rows, int64_t columns, const std::vector<int64_t>& ranks, const Mesh& mesh) {
  check_blocks(rows, columns, mesh);
  const int64_t along_rows = mesh.size(kRowAxes), along_columns = mesh.size(Axis::W), cp = mesh.size(Axis::Cp);
  TokenBlocks blocks;
  for (const int64_t rank : ranks) {
    blocks.of_member.push_back(
        {.rows = block_of(rows, along_rows, mesh.coordinate(rank, Axis::H) * cp + mesh.coordinate(rank, Axis::Cp)),
         .columns = block_of(columns, along_columns, mesh.coordinate(rank, Axis::W))});
  }
  return blocks;
}

// Blocks of the same rows are joined to a band, from west to east, and bands from north to south.
at::Tensor blocks_to_rows(const TokenBlocks& blocks, const at::Tensor& tokens, int64_t dim) {
  struct Part {
    TokenBlock block;
    at::Tensor tokens;
  };
  std::vector<Part> parts;
  int64_t first = 0;
  for (const TokenBlock& block : blocks.of_member) {
    const at::Tensor own = tokens.narrow(dim, first, block.num_tokens());
    parts.push_back({block, own.unflatten(dim, {block.rows.size(), block.columns.size()})});
    first += block.num_tokens();
  }
  std::ranges::sort(parts, {}, [](const Part& part) { return std::pair(part.block.rows.begin, part.block.columns.begin); });
  std::vector<at::Tensor> bands, band;
  for (size_t i = 0; i < parts.size(); ++i) {
    band.push_back(parts[i].tokens);
    const bool ends_band = i + 1 == parts.size() || parts[i + 1].block.rows != parts[i].block.rows;
    if (!ends_band) continue;
    bands.push_back(at::cat(band, dim + 1));
    band.clear();
  }
  return at::cat(bands, dim).flatten(dim, dim + 1);
}

at::Tensor rows_to_blocks(const TokenBlocks& blocks, const at::Tensor& tokens, int64_t dim) {
  std::vector<at::Tensor> parts;
  for (const TokenBlock& block : blocks.of_member) parts.push_back(tokens_of_block(block, tokens, columns_of(blocks), dim));
  return at::cat(parts, dim);
}

at::Tensor tokens_of_block(const TokenBlock& block, const at::Tensor& tokens, int64_t columns, int64_t dim) {
  return tokens.unflatten(dim, {-1, columns})
      .narrow(dim, block.rows.begin, block.rows.size())
      .narrow(dim + 1, block.columns.begin, block.columns.size())
      .flatten(dim, dim + 1);
}

}  // namespace welkin::parallel
