// SPDX-License-Identifier: Apache-2.0
// What a mesh looks like before anything runs: which ranks talk to each other, and what stays within a node.
#pragma once

#include <cstdint>
#include <string>

#include "parallel/mesh/mesh.h"

namespace welkin::parallel {

// Lines of text: the axes, every group along each axis larger than one with whether its members share a node, and the grid: one
// row per node with the coordinates of its ranks. Ranks fill the nodes in order, equally many on each; num_nodes divides the
// size.
std::string mesh_picture(const Mesh& mesh, int64_t num_nodes);

}  // namespace welkin::parallel
