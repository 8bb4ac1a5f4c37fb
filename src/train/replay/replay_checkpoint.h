// SPDX-License-Identifier: Apache-2.0
// A replay buffer in a checkpoint: for each slot the states of all places of the batch, so that any number of ranks goes on with
// them.
#pragma once

#include <string>

#include "parallel/comm/mesh_groups.h"
#include "train/checkpoint/checkpoint.h"
#include "train/replay/replay_buffer.h"

namespace welkin::train {

// Of this rank, whose `replicas` share out the batch and put the tensors together. Of ranks with the same states one writes them.
CheckpointGroup replay_group(const ReplayBuffer& replay, const parallel::MeshGroups& mesh, const parallel::Group& replicas);

// Nothing is read where the checkpoint has none, or one of another batch or number of slots. The line for the log says which.
std::string load_replay(const Checkpoint& checkpoint, const ReplayBuffer& replay);

}  // namespace welkin::train
