// SPDX-License-Identifier: Apache-2.0
// Copies of the first node's checkpoints on the next node's disk, through a group of two ranks that nothing else uses: a lost
// node is then no lost checkpoint.
#pragma once

#include "parallel/comm/group.h"
#include "parallel/comm/world.h"
#include "train/checkpoint/checkpoint_store.h"
#include "train/nodes/node_map.h"

namespace welkin::train {

class NeighbourCopies {
 public:
  // Every rank calls it. Where there is one node, there are no copies.
  NeighbourCopies(const parallel::World& world, const NodeMap& map);

  // What the place does beside training from now on: send where it was written, take where the copy lies. All are done before the
  // next checkpoint begins, and one place after the other.
  void attach(CheckpointPlace& place) const;

  // Whether this rank's disk has checkpoints of such a place after a save.
  bool keeps() const { return is_sender_ || is_receiver_; }

 private:
  parallel::Group pair_;  // of the first ranks of the first two nodes; else of this rank alone
  bool is_sender_ = true, is_receiver_ = false;
};

}  // namespace welkin::train
