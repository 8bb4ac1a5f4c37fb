// SPDX-License-Identifier: Apache-2.0
// A checkpoint that many ranks write at once, each its own files, and one publishes: by one rename, when all have written. And
// one that many ranks open.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "parallel/comm/group.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/whole_tensors.h"

namespace welkin::train {

// Every rank of `world` calls it with the same `folder`, which lies on a file system that all see. The first one asks `begin` for
// the index, or for nothing where there is nothing to write, and writes the whole tensors besides its pieces. It throws what
// begin() throws, and CheckpointError with the reason and the rank where a file cannot be written; then nothing is left behind.
// The others return. CommError on all when a rank does not take part.
void write_shared_checkpoint(const parallel::Group& world, const std::filesystem::path& folder, const RankTensors& own,
                             const std::function<std::optional<CheckpointIndex>()>& begin);

// The checkpoint on every rank of `world`, each of which has verified its share of the files: all bytes are looked at once.
// CheckpointError on all where a rank finds a file missing or damaged.
Checkpoint open_shared_checkpoint(const parallel::Group& world, const std::filesystem::path& folder);

// The first rank's list on all: a folder may change while others look.
std::vector<int64_t> steps_of_first(const parallel::Group& world, const std::vector<int64_t>& steps);

}  // namespace welkin::train
