// SPDX-License-Identifier: Apache-2.0
// Which ranks share a node, and which of them is responsible for its disk.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel/comm/group.h"

namespace welkin::train {

struct NodeMap {
  int64_t node = 0;                    // of this rank
  std::vector<int64_t> leaders = {0};  // the first rank of each node, by node

  int64_t num_nodes() const { return static_cast<int64_t>(leaders.size()); }
  bool leads(int64_t rank) const { return leaders[static_cast<size_t>(node)] == rank; }
};

// The map from the launchers' node numbers: `node` is that of this rank. Every rank calls it.
NodeMap map_of_nodes(const parallel::Group& world, int64_t node);

}  // namespace welkin::train
