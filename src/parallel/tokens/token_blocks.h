// SPDX-License-Identifier: Apache-2.0
// Blocks of a grid of patches, for ranks that cut a field along its width too. The tokens of a block are row-major within the
// block, and those of a group lie block by block, in the order of its members.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "parallel/comm/collectives.h"
#include "parallel/mesh/mesh.h"
#include "parallel/spatial/block_geometry.h"

namespace welkin::parallel {

struct TokenBlock {
  CellRange rows, columns;  // of patches

  int64_t num_tokens() const { return rows.size() * columns.size(); }
};

struct TokenBlocks {
  std::vector<TokenBlock> of_member;  // by place in the group

  Lengths lengths() const;
};

// ConfigError if there are more ranks than rows of patches, or columns.
void check_blocks(int64_t rows, int64_t columns, const Mesh& mesh);

// Columns are cut over w, rows over h and, within each band of rows, over cp, as evenly as they can be. `ranks`: the group along
// these axes. ConfigError as above.
TokenBlocks token_blocks(int64_t rows, int64_t columns, const std::vector<int64_t>& ranks, const Mesh& mesh);

// Tokens along `dim` from block by block to the rows of the whole grid, and back. Differentiable; copies.
at::Tensor blocks_to_rows(const TokenBlocks& blocks, const at::Tensor& tokens, int64_t dim = 1);
at::Tensor rows_to_blocks(const TokenBlocks& blocks, const at::Tensor& tokens, int64_t dim = 1);
// The tokens of one block, of those in the rows of a grid with so many columns.
at::Tensor tokens_of_block(const TokenBlock& block, const at::Tensor& tokens, int64_t columns, int64_t dim = 1);

}  // namespace welkin::parallel
