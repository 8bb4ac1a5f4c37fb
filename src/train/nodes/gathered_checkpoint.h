// SPDX-License-Identifier: Apache-2.0
// A checkpoint that lies on some nodes' own disks, for a run that goes on: which there are, and bringing one to every node.
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

// Every rank of `world` calls both.

// Of all nodes, the newest first; only names. `store`: on the disk of this rank's node.
std::vector<int64_t> steps_on_nodes(const parallel::Group& world, const NodeMap& map, const CheckpointStore& store);

// Afterwards every node has the checkpoint `folder`, on its own disk, whole, each file from the first node that has it undamaged.
// `say` hears on every rank what was damaged, and what came from where. CheckpointError, on all ranks, where a file is whole on
// no node. A node that cannot write it stays without: opening it says so. True on the rank that has written it for its node.
bool bring_to_all_nodes(const parallel::Group& world, const NodeMap& map, const std::filesystem::path& folder,
                        const std::function<void(const std::string&)>& say);

}  // namespace welkin::train
