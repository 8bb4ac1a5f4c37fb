// SPDX-License-Identifier: Apache-2.0
// Checkpoints hold whole tensors, so that any layout loads what any other has saved: split ones are put together before a save
// and cut again after a load. Values that go with a parameter ("exp_avg.<parameter>") are split as it is.
#pragma once

#include "parallel/comm/mesh_groups.h"
#include "parallel/shard/param_table.h"
#include "train/checkpoint/checkpoint.h"

namespace welkin::train {

// The same group with whole tensors. Every rank of tp calls it with the same names in the same order.
CheckpointGroup gather_whole(const CheckpointGroup& local, const parallel::ParamTable& table, const parallel::MeshGroups& groups);

// The other way: copies the parts that are this rank's out of whole tensors. A tensor that is the same in both stays.
void cut_parts(const CheckpointGroup& whole, const CheckpointGroup& local, const parallel::ParamTable& table,
               const parallel::MeshGroups& groups);

// Reads a group from a checkpoint into the local tensors.
void read_parts(const Checkpoint& checkpoint, const CheckpointGroup& local, const parallel::ParamTable& table,
                const parallel::MeshGroups& groups);

}  // namespace welkin::train
