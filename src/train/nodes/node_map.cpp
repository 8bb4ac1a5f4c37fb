// SPDX-License-Identifier: Apache-2.0
#include "train/nodes/node_map.h"

#include <ATen/ops/full.h>

#include <map>

#include "parallel/comm/collectives.h"

namespace welkin::train {

NodeMap map_of_nodes(const parallel::Group& world, int64_t node) {
  const parallel::Lengths ones(static_cast<size_t>(world.size()), 1);
  const at::Tensor nodes = parallel::all_gather(world, at::full({1}, node, at::kLong), 0, ones);
  const auto* of_rank = nodes.const_data_ptr<int64_t>();
  std::map<int64_t, int64_t> first_ranks;
  for (int64_t rank = 0; rank < world.size(); ++rank) first_ranks.emplace(of_rank[rank], rank);
  NodeMap map{.node = 0, .leaders = {}};
  for (const auto& [number, rank] : first_ranks) {
    if (number == node) map.node = map.num_nodes();
    map.leaders.push_back(rank);
  }
  return map;
}

}  // namespace welkin::train
