// SPDX-License-Identifier: Apache-2.0
#include "parallel/mesh/mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "core/error.h"

namespace welkin::parallel {
namespace {

using Ranks = std::vector<std::vector<int64_t>>;

TEST(Mesh, SixteenRanksOfTheTutorial) {
  const Mesh mesh("tp-cp-dp", {.dp_replicate = 4, .tp = 2, .cp = 2});
  EXPECT_EQ(mesh.world_size(), 16);
  EXPECT_EQ(mesh.order(), "tp-cp-dp-pp");
  EXPECT_EQ(mesh.groups(kDp), (Ranks{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
  EXPECT_EQ(mesh.groups(Axis::Tp | Axis::Cp), (Ranks{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}}));
  const Mesh other("cp-tp-dp", {.dp_replicate = 4, .tp = 2, .cp = 2});
  EXPECT_EQ(other.groups(kDp | Axis::Cp), (Ranks{{0, 1, 4, 5, 8, 9, 12, 13}, {2, 3, 6, 7, 10, 11, 14, 15}}));
}

TEST(Mesh, OneRankIsAMeshLikeAnyOther) {
  const Mesh mesh;
  EXPECT_EQ(mesh.world_size(), 1);
  EXPECT_EQ(mesh.size(kDp | Axis::Tp), 1);
  EXPECT_EQ(mesh.groups(Axis::Tp), (Ranks{{0}}));
  EXPECT_EQ(mesh.group_of(0, kDp).place, 0);
  EXPECT_EQ(mesh.coordinates_text(0), "");
}

TEST(Mesh, GroupsOfASetPartitionTheRanks) {
  const Mesh mesh("w-tp-dp-h-pp", {.dp_replicate = 2, .dp_shard = 3, .tp = 2, .pp = 2, .h = 2, .w = 3});
  EXPECT_EQ(mesh.world_size(), 144);
  for (const AxisSet axes : {AxisSet(Axis::Tp), AxisSet(Axis::DpShard), kDp, kDp | Axis::H, Axis::W | Axis::H}) {
    std::set<int64_t> seen;
    for (const auto& group : mesh.groups(axes)) {
      EXPECT_EQ(static_cast<int64_t>(group.size()), mesh.size(axes));
      seen.insert(group.begin(), group.end());
    }
    EXPECT_EQ(seen.size(), 144U);
  }
}

TEST(Mesh, MembersAreWhereTheirCoordinatesSay) {
  const Mesh mesh("tp-cp-dp", {.dp_replicate = 2, .tp = 2, .cp = 2});
  const GroupMembers group = mesh.group_of(6, Axis::Cp);
  EXPECT_EQ(group.ranks, (std::vector<int64_t>{4, 6}));
  EXPECT_EQ(group.place, 1);
  EXPECT_EQ(mesh.coordinate(6, Axis::Cp), 1);
  EXPECT_EQ(mesh.coordinates_text(6), "tp 0, cp 1, dp_replicate 1");
}

std::string order_error(const std::string& order, const MeshSizes& sizes) {
  try {
    const Mesh mesh(order, sizes);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Mesh, RefusesAnOrderThatDoesNotDescribeIt) {
  EXPECT_THAT(
      order_error("tp-dp", {.dp_replicate = 2, .tp = 2, .cp = 2}),
      testing::HasSubstr("[parallel] the rank order does not describe the mesh: order=tp-dp, not named although larger than "
                         "one: cp=2. Name every axis larger than one exactly once"));
  EXPECT_THAT(order_error("tp-tp", {.tp = 2}), testing::HasSubstr("unknown or repeated axis=tp"));
  EXPECT_THAT(order_error("tp-xp", {}), testing::HasSubstr("unknown or repeated axis=xp"));
  EXPECT_THAT(order_error("tp", {.tp = 0}), testing::HasSubstr("tp=0"));
}

}  // namespace
}  // namespace welkin::parallel
