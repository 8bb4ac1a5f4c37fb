// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/mesh_groups.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/text.h"

namespace welkin::parallel {
namespace {

struct NamedAxes {
  const char* name;
  AxisSet axes;
};

constexpr Axis kReplicate = Axis::DpReplicate;
constexpr Axis kShard = Axis::DpShard;

constexpr std::array<NamedAxes, 16> kGroupedAxes{{{"dp", kDp},
                                                  {"tp", Axis::Tp},
                                                  {"cp", Axis::Cp},
                                                  {"pp", Axis::Pp},
                                                  {"spatial", kSpatial},
                                                  {"parts", kSampleParts},
                                                  {"tp-cp", Axis::Tp | kSampleParts},
                                                  {"dp-cp", kDp | kSampleParts},
                                                  {"dp-tp", kDp | Axis::Tp},
                                                  {"dp-tp-cp", kDp | Axis::Tp | kSampleParts},
                                                  {"dp_shard", kShard},
                                                  {"dp_shard-cp", kShard | kSampleParts},
                                                  {"dp_replicate", kReplicate},
                                                  {"dp_replicate-tp", kReplicate | Axis::Tp},
                                                  {"dp_replicate-cp", kReplicate | kSampleParts},
                                                  {"dp_replicate-tp-cp", kReplicate | Axis::Tp | kSampleParts}}};

// A group of ranks that share a sample is called after blocks, if there are any.
std::string name_in(const Mesh& mesh, const NamedAxes& named) {
  std::string name = named.name;
  const bool is_cut = named.axes.contains(Axis::D) && mesh.size(kSpatial) > 1;
  if (is_cut && name.ends_with("-cp")) name.replace(name.size() - 2, 2, "spatial");
  return name;
}

// Both kinds of data parallelism are there: else each set of axes is one with all of dp, or with none of it.
bool is_hybrid(const Mesh& mesh) { return mesh.size(kReplicate) > 1 && mesh.size(kShard) > 1; }

}  // namespace

MeshGroups::MeshGroups() {
  for (const NamedAxes& named : kGroupedAxes) groups_.emplace_back(named.axes, Group());
}

MeshGroups::MeshGroups(const MakeGroup& make, int64_t rank, const Mesh& mesh) : mesh_(mesh), rank_(rank), make_(make) {
  for (const NamedAxes& named : kGroupedAxes) {
    GroupMembers members = mesh.group_of(rank_, named.axes);
    const auto same = std::find_if(groups_.begin(), groups_.end(), [&](const auto& made) {
      return made.second.ranks() == members.ranks && mesh.size(made.first) == mesh.size(named.axes);
    });
    groups_.emplace_back(named.axes, same != groups_.end() ? same->second : make(name_in(mesh, named), std::move(members)));
  }
}

// Axes that cut blocks are all of kSpatial if the others do not.
const Group& MeshGroups::along(AxisSet axes) const {
  if (axes != AxisSet() && (axes | kSpatial) == kSpatial && mesh_.size(axes) == mesh_.size(kSpatial)) axes = kSpatial;
  if (axes.contains(Axis::Cp) && axes != AxisSet(Axis::Cp)) axes = axes | kSampleParts;
  const auto found = std::find_if(groups_.begin(), groups_.end(), [&](const auto& made) { return made.first == axes; });
  WELKIN_CHECK(found != groups_.end(), "a group of these axes is not made");
  return found->second;
}

Group MeshGroups::among(AxisSet axes, const std::vector<int64_t>& places, const std::string& name) const {
  const Group& all = along(axes);
  if (static_cast<int64_t>(places.size()) == all.size()) return all;
  GroupMembers members;
  for (const int64_t place : places) {
    if (place == all.group_rank()) members.place = members.size();
    members.ranks.push_back(all.ranks()[static_cast<size_t>(place)]);
  }
  return make_(name, std::move(members));
}

std::string MeshGroups::text() const {
  std::string lines;
  for (const NamedAxes& named : kGroupedAxes) {
    const bool is_part_of_dp = named.axes.contains(kReplicate) != named.axes.contains(kShard);
    if (mesh_.size(named.axes) == 1 || (is_part_of_dp && !is_hybrid(mesh_))) continue;
    lines += cat(name_in(mesh_, named), ":");
    for (const auto& ranks : mesh_.groups(named.axes)) lines += cat(" [", join(ranks, ", "), "]");
    lines += "\n";
  }
  return lines;
}

}  // namespace welkin::parallel
