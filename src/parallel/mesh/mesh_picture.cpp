// SPDX-License-Identifier: Apache-2.0
#include "parallel/mesh/mesh_picture.h"

#include <algorithm>
#include <iomanip>
#include <sstream>
#include <vector>

#include "core/error.h"
#include "core/text.h"

namespace welkin::parallel {
namespace {

constexpr size_t kShownGroups = 16, kShownRanks = 16;
constexpr int64_t kShownNodes = 16;

struct PictureAxis {
  const char* name;
  AxisSet axes;
};

std::vector<PictureAxis> pictured_axes() {
  return {{"tp", Axis::Tp}, {"cp", Axis::Cp}, {"dp", kDp}, {"pp", Axis::Pp}, {"w", Axis::W}, {"h", Axis::H}, {"d", Axis::D}};
}

std::string pictured_ranks(const std::vector<int64_t>& ranks) {
  const std::vector<int64_t> first(ranks.begin(),
                                   ranks.begin() + static_cast<std::ptrdiff_t>(std::min(kShownRanks, ranks.size())));
  return cat("[", join(first, " "), ranks.size() > kShownRanks ? " ..." : "", "]");
}

// "groups along tp: 4 of 2, within a node: [0 1] [2 3] ..."
std::string groups_line(const Mesh& mesh, const PictureAxis& axis, int64_t ranks_per_node) {
  const auto groups = mesh.groups(axis.axes);
  const auto is_local = [&](const std::vector<int64_t>& ranks) {
    return std::all_of(ranks.begin(), ranks.end(),
                       [&](int64_t rank) { return rank / ranks_per_node == ranks[0] / ranks_per_node; });
  };
  const auto num_local = static_cast<size_t>(std::count_if(groups.begin(), groups.end(), is_local));
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(kShownGroups, groups.size()); ++i) texts.push_back(pictured_ranks(groups[i]));
  const std::string where = num_local == groups.size() ? "within a node"
                            : num_local == 0           ? "across nodes"
                                                       : cat(num_local, " within a node");
  return cat("groups along ", axis.name, ": ", groups.size(), " of ", groups[0].size(), ", ", where, ": ", join(texts, " "),
             groups.size() > kShownGroups ? " ..." : "", "\n");
}

// "t1 c0 d3": a rank's coordinates on the axes larger than one.
std::string cell(const Mesh& mesh, int64_t rank) {
  std::vector<std::string> parts;
  for (const PictureAxis& axis : pictured_axes()) {
    if (mesh.size(axis.axes) > 1) parts.push_back(cat(axis.name, mesh.group_of(rank, axis.axes).place));
  }
  return cat(rank, parts.empty() ? "" : ":", join(parts, ","));
}

}  // namespace

std::string mesh_picture(const Mesh& mesh, int64_t num_nodes) {
  const int64_t world = mesh.world_size();
  if (num_nodes < 1 || world % num_nodes != 0) {
    throw ConfigError("parallel", cat("the ranks do not fill the nodes evenly: world=", world, ", nodes=", num_nodes),
                      "Choose a number of nodes that divides the number of ranks");
  }
  const int64_t per_node = world / num_nodes;
  std::ostringstream out;
  out << "mesh        " << world << " ranks, order " << mesh.order() << " (left = nearest ranks), " << num_nodes
      << (num_nodes == 1 ? " node of " : " nodes of ") << per_node << "\n";
  for (const PictureAxis& axis : pictured_axes()) {
    if (mesh.size(axis.axes) > 1) out << groups_line(mesh, axis, per_node);
  }
  size_t width = 0;
  for (int64_t rank = 0; rank < world; ++rank) width = std::max(width, cell(mesh, rank).size());
  for (int64_t node = 0; node < std::min(num_nodes, kShownNodes); ++node) {
    out << "node " << std::left << std::setw(4) << node << "|";
    for (int64_t i = 0; i < std::min<int64_t>(per_node, kShownRanks); ++i) {
      out << " " << std::setw(static_cast<int>(width)) << cell(mesh, node * per_node + i) << " |";
    }
    out << (per_node > static_cast<int64_t>(kShownRanks) ? " ...\n" : "\n");
  }
  if (num_nodes > kShownNodes) out << "... " << num_nodes - kShownNodes << " more nodes\n";
  return out.str();
}

}  // namespace welkin::parallel
