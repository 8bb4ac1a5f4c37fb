// SPDX-License-Identifier: Apache-2.0
#include "parallel/tokens/field_shard.h"

#include <algorithm>

namespace welkin::parallel {

FieldShard field_shard(int64_t first_token, int64_t num_tokens, int64_t columns) {
  FieldShard share;
  const int64_t end = first_token + num_tokens;
  share.first_row = first_token / columns;
  share.num_rows = (end + columns - 1) / columns - share.first_row;
  share.num_columns = columns;
  share.first_token = first_token - share.first_row * columns;
  share.num_tokens = num_tokens;
  // One piece per row; adjacent whole rows form one piece.
  for (int64_t token = share.first_token, left = num_tokens; left > 0;) {
    const int64_t column = token % columns;
    const bool whole_rows = column == 0 && left >= columns;
    const int64_t rows = whole_rows ? left / columns : 1;
    const int64_t width = whole_rows ? columns : std::min(left, columns - column);
    share.own.push_back({.row = token / columns, .column = column, .rows = rows, .columns = width});
    token += rows * width;
    left -= rows * width;
  }
  return share;
}

FieldShard field_shard(const TokenSplit& split, int64_t columns) {
  const TokenBlock* block = split.own_block();
  if (block == nullptr) return field_shard(split.offset(), split.num_own(), columns);
  return {.first_row = block->rows.begin,
          .first_column = block->columns.begin,
          .num_rows = block->rows.size(),
          .num_columns = block->columns.size(),
          .num_tokens = block->num_tokens(),
          .own = {{.rows = block->rows.size(), .columns = block->columns.size()}}};
}

}  // namespace welkin::parallel
