// SPDX-License-Identifier: Apache-2.0
// The block of a sample of each rank in a mesh: the axes d, h, w cut the dims of a box. Pure arithmetic, torch-free.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel/mesh/mesh.h"
#include "parallel/spatial/halo_plan.h"

namespace welkin::parallel {

// The axes of the mesh in the order of a box's dims.
inline constexpr std::array<Axis, kSpaceAxes> kSpaceAxisOrder{Axis::D, Axis::H, Axis::W};

BlockGrid grid_of(const Cells& cells, const Mesh& mesh);
// Block coordinates of each of these ranks.
std::vector<Cells> coordinates_of(const std::vector<int64_t>& ranks, const Mesh& mesh);

}  // namespace welkin::parallel
