// SPDX-License-Identifier: Apache-2.0
// A replay buffer in a checkpoint: for each slot the states of all lanes of the batch, so that any number of ranks can go on
// with them.
#pragma once

#include <string>

#include "parallel/comm/mesh_groups.h"
#include "train/checkpoint/checkpoint.h"
#include "train/replay/replay_buffer.h"

namespace welkin::train {

// The states of this rank; `replicas` share out the batch and join the tensors. Of ranks with equal states one writes them.
CheckpointGroup replay_group(const ReplayBuffer& replay, const parallel::MeshGroups& mesh, const parallel::Group& replicas);

// Reads nothing if the checkpoint has no buffer, or one of another batch size or number of slots. Returns the line for the log.
std::string load_replay(const Checkpoint& checkpoint, const ReplayBuffer& replay);

}  // namespace welkin::train
