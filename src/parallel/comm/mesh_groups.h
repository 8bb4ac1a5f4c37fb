// SPDX-License-Identifier: Apache-2.0
// The groups of one rank in a mesh: one per set of axes that something reduces or exchanges over.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "parallel/comm/group.h"
#include "parallel/mesh/mesh.h"

namespace welkin::parallel {

// Connection::make_group, or another maker of groups.
using MakeGroup = std::function<Group(const std::string&, GroupMembers)>;

class MeshGroups {
 public:
  // A process alone: every group has one member.
  MeshGroups();

  // Every rank of the mesh calls it. Groups are made in one fixed order on every rank; sets of axes with the same members share
  // one communicator.
  MeshGroups(const MakeGroup& make, int64_t rank, const Mesh& mesh);

  const Mesh& mesh() const { return mesh_; }
  int64_t rank() const { return rank_; }
  // Along these axes through this rank. InternalError for a set that is none of tp, cp, kSpatial, dp and the unions of tp, dp and
  // kSampleParts, nor pp, nor dp_shard (with kSampleParts) or dp_replicate (with tp and kSampleParts). A union with cp stands for
  // one with kSampleParts, and the axes that cut blocks for kSpatial.
  const Group& along(AxisSet axes) const;

  // Of the members of along(axes) those at these places, ascending, of which this rank is one: the whole group, or one that is
  // made for them. Members call it in the same order, while what makes groups is there.
  Group among(AxisSet axes, const std::vector<int64_t>& places, const std::string& name) const;

  // One line per group of more than one: "tp: [0, 1] [2, 3]", of the whole mesh.
  std::string text() const;

 private:
  Mesh mesh_;
  int64_t rank_ = 0;
  MakeGroup make_;  // empty in a process alone
  std::vector<std::pair<AxisSet, Group>> groups_;
};

}  // namespace welkin::parallel
