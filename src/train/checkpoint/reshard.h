// SPDX-License-Identifier: Apache-2.0
// Writes a checkpoint again for another number of ranks, without running them: the same bits in other pieces.
#pragma once

#include <cstdint>
#include <filesystem>

#include "train/checkpoint/checkpoint.h"

namespace welkin::train {

struct ReshardReport {
  int64_t tensors = 0, cut = 0;  // all tensors, and those in pieces
};

// Makes `target`, which must not exist, with the tensors of `source` in the pieces of `shards` data-parallel ranks under
// --shard full, or whole for one. At most one piece is in memory. CheckpointError with the reason; then nothing is left behind.
ReshardReport reshard(const Checkpoint& source, int64_t shards, const std::filesystem::path& target);

}  // namespace welkin::train
