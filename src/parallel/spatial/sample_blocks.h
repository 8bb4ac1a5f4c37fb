// SPDX-License-Identifier: Apache-2.0
// Which block of a sample each rank of a mesh has: the axes d, h, w cut the dims of a box; pure arithmetic, torch-free.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel/mesh/mesh.h"
#include "parallel/spatial/halo_plan.h"

namespace welkin::parallel {

// The axes of the mesh in the order of a box's dims.
inline constexpr std::array<Axis, kSpaceAxes> kSpaceAxisOrder{Axis::D, Axis::H, Axis::W};

BlockGrid grid_of(const Cells& cells, const Mesh& mesh);
// Of each of these ranks.
std::vector<Cells> coordinates_of(const std::vector<int64_t>& ranks, const Mesh& mesh);

}  // namespace welkin::parallel
