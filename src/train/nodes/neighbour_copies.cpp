// SPDX-License-Identifier: Apache-2.0
#include "train/nodes/neighbour_copies.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/text.h"
#include "train/nodes/folder_stream.h"

namespace welkin::train {

// Both ends of a link make the group of their lower link first, so that no ranks wait for each other in a circle.
NeighbourCopies::NeighbourCopies(const parallel::World& world, const NodeMap& map, bool is_sharded)
    : is_writer_(world.rank() == map.leaders[0] || (is_sharded && map.leads(world.rank()))), is_sharded_(is_sharded) {
  if (map.num_nodes() == 1) return;
  const int64_t links = is_sharded ? map.num_nodes() : 1;
  for (int64_t link = 0; link < links; ++link) {
    const int64_t from = map.leaders[static_cast<size_t>(link)];
    const int64_t to = map.leaders[static_cast<size_t>((link + 1) % map.num_nodes())];
    const bool is_sender = world.rank() == from;
    if (!is_sender && world.rank() != to) continue;
    (is_sender ? next_ : before_) = world.group(cat("neighbour ", link), {{from, to}, is_sender ? 0 : 1});
  }
}

void NeighbourCopies::attach(CheckpointPlace& place) const {
  if (next_.size() > 1) {
    place.copy_out = [pair = next_](const std::optional<std::filesystem::path>& folder, const std::vector<std::string>& files) {
      send_checkpoint(pair, 1, folder, files);
    };
    place.ask_patience = [pair = next_] { send_patience(pair, 1); };
  }
  if (before_.size() == 1) return;
  place.copy_in = [pair = before_, &store = place.store, keep = place.keep, is_sharded = is_sharded_] {
    if (is_sharded) {
      receive_files(pair, 0, store);
    } else if (receive_checkpoint(pair, 0, store)) {
      store.prune(keep);
    }
  };
}

}  // namespace welkin::train
