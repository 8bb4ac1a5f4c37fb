// SPDX-License-Identifier: Apache-2.0
// What `train --dry_run --world N --nodes M` shows of the mesh.
#include "parallel/mesh/mesh_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "parallel/mesh/run_mesh.h"

namespace welkin::parallel {
namespace {

using testing::AllOf;
using testing::HasSubstr;

config::ParallelConfig layout(int64_t tp, int64_t cp, const std::string& order) {
  config::ParallelConfig config;
  config.tensor_parallel = tp;
  config.context_parallel = cp;
  config.parallel_order = order;
  return config;
}

TEST(MeshPicture, ShowsEveryGroupAndTheNodes) {
  EXPECT_EQ(mesh_picture(mesh_of(layout(2, 1, "tp-cp-dp"), 8), 2),
            "mesh        8 ranks, order tp-cp-dp-pp (left = nearest ranks), 2 nodes of 4\n"
            "groups along tp: 4 of 2, within a node: [0 1] [2 3] [4 5] [6 7]\n"
            "groups along dp: 2 of 4, across nodes: [0 2 4 6] [1 3 5 7]\n"
            "node 0   | 0:tp0,dp0 | 1:tp1,dp0 | 2:tp0,dp1 | 3:tp1,dp1 |\n"
            "node 1   | 4:tp0,dp2 | 5:tp1,dp2 | 6:tp0,dp3 | 7:tp1,dp3 |\n");
}

TEST(MeshPicture, AnOrderWithDpFirstTakesTpAcrossNodes) {
  EXPECT_THAT(mesh_picture(mesh_of(layout(2, 1, "dp-tp-cp"), 8), 2),
              HasSubstr("groups along tp: 4 of 2, across nodes: [0 4] [1 5]"));
}

// Blocks of a sample lie between what splits weights and replicas, unless the order says where.
TEST(MeshPicture, BlocksAreNearerThanReplicas) {
  config::ParallelConfig config = layout(2, 1, "tp-cp-dp");
  config.spatial = {.d = 2, .h = 1, .w = 2};
  EXPECT_THAT(mesh_picture(mesh_of(config, 16), 1),
              AllOf(HasSubstr("16 ranks, order tp-cp-w-d-dp-pp"), HasSubstr("groups along w: 8 of 2, within a node: [0 2] [1 3]"),
                    HasSubstr("groups along d: 8 of 2, within a node: [0 4] [1 5]"),
                    HasSubstr("groups along dp: 8 of 2, within a node: [0 8]")));
  config.parallel_order = "tp-dp-d-w";
  EXPECT_THAT(mesh_picture(mesh_of(config, 16), 1), HasSubstr("order tp-dp-d-w-pp-cp"));
}

TEST(MeshPicture, OneRankHasNoGroups) {
  EXPECT_EQ(mesh_picture(Mesh(), 1),
            "mesh        1 ranks, order tp-cp-dp-pp (left = nearest ranks), 1 node of 1\nnode 0   | 0 |\n");
}

TEST(MeshPicture, ALargeMeshIsCutShort) {
  const std::string text = mesh_picture(mesh_of(layout(1, 1, "tp-cp-dp"), 4096), 512);
  EXPECT_LT(text.size(), 4000U);
  EXPECT_THAT(text, HasSubstr("... 496 more nodes"));
}

TEST(MeshPicture, RefusesWhatDoesNotFit) {
  EXPECT_THROW(mesh_picture(Mesh(), 2), ConfigError);
  EXPECT_THROW(mesh_of(layout(3, 1, "tp-cp-dp"), 8), ConfigError);
}

}  // namespace
}  // namespace welkin::parallel
