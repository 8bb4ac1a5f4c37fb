// SPDX-License-Identifier: Apache-2.0
#include "train/nodes/neighbour_copies.h"

#include <filesystem>
#include <optional>

#include "train/nodes/folder_stream.h"

namespace welkin::train {

NeighbourCopies::NeighbourCopies(const parallel::World& world, const NodeMap& map) {
  is_sender_ = world.rank() == map.leaders[0];
  if (map.num_nodes() == 1) return;
  is_receiver_ = world.rank() == map.leaders[1];
  if (keeps()) pair_ = world.group("neighbour", {{map.leaders[0], map.leaders[1]}, is_sender_ ? 0 : 1});
}

void NeighbourCopies::attach(CheckpointPlace& place) const {
  if (pair_.size() == 1) return;
  if (is_sender_) {
    place.copy_out = [pair = pair_](const std::optional<std::filesystem::path>& folder) { send_checkpoint(pair, 1, folder); };
    return;
  }
  place.copy_in = [pair = pair_, &store = place.store, keep = place.keep] {
    if (receive_checkpoint(pair, 0, store)) store.prune(keep);
  };
}

}  // namespace welkin::train
