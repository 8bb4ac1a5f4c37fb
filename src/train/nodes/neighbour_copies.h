// SPDX-License-Identifier: Apache-2.0
// Copies of a node's checkpoints on the next node's disk, through a group of two ranks that nothing else uses, so that a lost
// node loses no checkpoint. If one rank writes, the first node has the checkpoints. If all ranks write their parts, every node
// has those of its ranks; the first node is the next of the last.
#pragma once

#include "parallel/comm/group.h"
#include "parallel/comm/world.h"
#include "train/checkpoint/checkpoint_store.h"
#include "train/nodes/node_map.h"

namespace welkin::train {

class NeighbourCopies {
 public:
  // Every rank calls it. A single node makes no copies.
  NeighbourCopies(const parallel::World& world, const NodeMap& map, bool is_sharded);

  // Sets the place's work beside training: send from the node that wrote, receive on the node that keeps the copy. All copies
  // end before the next checkpoint begins; places are copied one after the other.
  void attach(CheckpointPlace& place) const;

  // True if this rank's disk has checkpoints of such a place after a save.
  bool keeps() const { return is_writer_ || next_.size() > 1 || before_.size() > 1; }

 private:
  parallel::Group next_, before_;  // groups to send and to receive: the first ranks of two nodes; else this rank alone
  bool is_writer_ = true, is_sharded_ = false;
};

}  // namespace welkin::train
