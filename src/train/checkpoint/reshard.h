// SPDX-License-Identifier: Apache-2.0
// A checkpoint written again for another number of ranks, without any of them: the same bits in other pieces.
#pragma once

#include <cstdint>
#include <filesystem>

#include "train/checkpoint/checkpoint.h"

namespace welkin::train {

struct ReshardReport {
  int64_t tensors = 0, cut = 0;  // of all, and of those in pieces
};

// Makes `target`, which must not exist, with the tensors of `source` in the pieces that `shards` data-parallel ranks have under
// --shard full, or whole for one. No more than a piece is in memory. CheckpointError with the reason, and nothing is left behind.
ReshardReport reshard(const Checkpoint& source, int64_t shards, const std::filesystem::path& target);

}  // namespace welkin::train
