// SPDX-License-Identifier: Apache-2.0
// A checkpoint on some nodes' own disks, for a run that goes on: lists the checkpoints, and brings one to every node.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "parallel/comm/group.h"
#include "train/checkpoint/checkpoint_store.h"
#include "train/nodes/node_map.h"

namespace welkin::train {

// Every rank of `world` calls both functions.

// Steps on all nodes, the newest first; reads only names. `store` is on the disk of this rank's node.
std::vector<int64_t> steps_on_nodes(const parallel::Group& world, const NodeMap& map, const CheckpointStore& store);

// Afterwards every node has the whole checkpoint `folder` on its own disk, each file from the first node that has it undamaged.
// On every rank `say` gets lines about damage, and the source of each file. CheckpointError, on all ranks, if no node has a
// file whole. A node that cannot write stays without; opening then fails. True on the rank that has written it for its node.
bool bring_to_all_nodes(const parallel::Group& world, const NodeMap& map, const std::filesystem::path& folder,
                        const std::function<void(const std::string&)>& say);

}  // namespace welkin::train
