// SPDX-License-Identifier: Apache-2.0
// A checkpoint that many ranks write at once, each its own files, and one publishes: by one rename, when all have written.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "parallel/comm/group.h"
#include "train/checkpoint/whole_tensors.h"

namespace welkin::train {

// Every rank of `world` calls it with the same `folder`, which lies on a file system that all see. The first one asks `begin` for
// the index, or for nothing where there is nothing to write, and writes the whole tensors besides its pieces. It throws what
// begin() throws, and CheckpointError with the reason and the rank where a file cannot be written; then nothing is left behind.
// The others return. CommError on all when a rank does not take part.
void write_shared_checkpoint(const parallel::Group& world, const std::filesystem::path& folder, const RankTensors& own,
                             const std::function<std::optional<CheckpointIndex>()>& begin);

}  // namespace welkin::train
