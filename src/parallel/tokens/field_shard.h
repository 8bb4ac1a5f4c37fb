// SPDX-License-Identifier: Apache-2.0
// The part of a field that a member's tokens cover, when each member reads only its own part: a block, or whole rows of patches,
// of which two members may share the first and the last. Pure arithmetic, in patches; tokens are row-major over what is read.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel/tokens/token_split.h"

namespace welkin::parallel {

struct FieldShard {
  struct Piece {
    int64_t row = 0, column = 0;    // of its first patch, within what is read
    int64_t rows = 0, columns = 0;  // in patches
  };

  int64_t first_row = 0, first_column = 0;  // of the patches that are read, in the whole field
  int64_t num_rows = 0, num_columns = 0;    // that are read
  int64_t first_token = 0;                  // own tokens, within those that are read
  int64_t num_tokens = 0;
  std::vector<Piece> own;  // rectangles of exactly the own tokens: at most three

  int64_t num_tokens_read() const { return num_rows * num_columns; }
};

// For tokens first_token ... first_token + num_tokens - 1 of a grid with `columns` patches in a row.
FieldShard field_shard(int64_t first_token, int64_t num_tokens, int64_t columns);
// For the tokens that a member of the split has; `columns` as above.
FieldShard field_shard(const TokenSplit& split, int64_t columns);

}  // namespace welkin::parallel
