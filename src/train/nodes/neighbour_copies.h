// SPDX-License-Identifier: Apache-2.0
// Copies of a node's checkpoints on the next node's disk, through a group of two ranks that nothing else uses: a lost node is
// then no lost checkpoint. Where one rank writes, the first node has the checkpoints; where all write their parts, every node has
// its ranks', and the first one follows the last.
#pragma once

#include "parallel/comm/group.h"
#include "parallel/comm/world.h"
#include "train/checkpoint/checkpoint_store.h"
#include "train/nodes/node_map.h"

namespace welkin::train {

class NeighbourCopies {
 public:
  // Every rank calls it. Where there is one node, there are no copies.
  NeighbourCopies(const parallel::World& world, const NodeMap& map, bool is_sharded);

  // What the place does beside training from now on: send where it was written, take where the copy lies. All are done before the
  // next checkpoint begins, and one place after the other.
  void attach(CheckpointPlace& place) const;

  // Whether this rank's disk has checkpoints of such a place after a save.
  bool keeps() const { return is_writer_ || next_.size() > 1 || before_.size() > 1; }

 private:
  parallel::Group next_, before_;  // to send to and to take from: of the first ranks of two nodes; else of this rank alone
  bool is_writer_ = true, is_sharded_ = false;
};

}  // namespace welkin::train
