// SPDX-License-Identifier: Apache-2.0
// Shows a mesh before anything runs: the groups along each axis, and which of them stay within a node.
#pragma once

#include <cstdint>
#include <string>

#include "parallel/mesh/mesh.h"

namespace welkin::parallel {

// Lines of text: the axes; every group along each axis larger than one, and whether its members share a node; and the grid: one
// row per node with the coordinates of its ranks. Ranks fill the nodes in order, equally many on each; num_nodes must divide
// the size.
std::string mesh_picture(const Mesh& mesh, int64_t num_nodes);

}  // namespace welkin::parallel
