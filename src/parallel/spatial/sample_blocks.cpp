// SPDX-License-Identifier: Apache-2.0
#include "parallel/spatial/sample_blocks.h"

namespace welkin::parallel {

BlockGrid grid_of(const Cells& cells, const Mesh& mesh) {
  BlockGrid grid{.cells = cells};
  for (size_t a = 0; a < kSpaceAxes; ++a) grid.blocks[a] = mesh.size(kSpaceAxisOrder[a]);
  return grid;
}

std::vector<Cells> coordinates_of(const std::vector<int64_t>& ranks, const Mesh& mesh) {
  std::vector<Cells> coordinates;
  for (const int64_t rank : ranks) {
    Cells& own = coordinates.emplace_back();
    for (size_t a = 0; a < kSpaceAxes; ++a) own[a] = mesh.coordinate(rank, kSpaceAxisOrder[a]);
  }
  return coordinates;
}

}  // namespace welkin::parallel
