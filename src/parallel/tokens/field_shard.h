// SPDX-License-Identifier: Apache-2.0
// The part of a field that a member's tokens cover, when each member reads only its own part: whole rows of patches, of which
// two members may share the first and the last. Pure arithmetic, in patches; tokens are row-major over the grid of patches.
#pragma once

#include <cstdint>
#include <vector>

namespace welkin::parallel {

struct FieldShard {
  struct Piece {
    int64_t row = 0, column = 0;    // of its first patch, within the rows that are read
    int64_t rows = 0, columns = 0;  // in patches
  };

  int64_t first_row = 0;    // first row of patches that is read, in the whole field
  int64_t num_rows = 0;     //
  int64_t num_columns = 0;  // patches of a row
  int64_t first_token = 0;  // own tokens, within those of the rows that are read
  int64_t num_tokens = 0;
  std::vector<Piece> own;  // rectangles of exactly the own tokens: at most three

  int64_t num_tokens_read() const { return num_rows * num_columns; }
};

// For tokens first_token ... first_token + num_tokens - 1 of a grid with `columns` patches in a row.
FieldShard field_shard(int64_t first_token, int64_t num_tokens, int64_t columns);

}  // namespace welkin::parallel
