// SPDX-License-Identifier: Apache-2.0
// The layouts that a search tries.
#include "plan/layouts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace welkin::plan {
namespace {

using testing::Contains;
using testing::Each;
using testing::Field;
using testing::Not;

LayoutSpace space_of(int64_t devices, int64_t node_devices, const std::map<std::string, std::string>& given = {}) {
  return {.devices = devices, .node_devices = node_devices, .given = [given](const std::string& key) {
            const auto found = given.find(key);
            return found == given.end() ? std::nullopt : std::optional(found->second);
          }};
}

TEST(Layouts, DivideAllDevicesEachOnce) {
  const std::vector<LayoutChoice> all = meshes(space_of(16, 8));
  std::set<std::string> texts;
  for (const LayoutChoice& layout : all) {
    EXPECT_EQ(layout.dp * layout.tp * layout.cp * layout.pp * layout.num_blocks(), 16) << layout.text();
    EXPECT_LE(layout.tp, 8) << layout.text();
    EXPECT_TRUE(layout.cp == 1 || layout.num_blocks() == 1) << layout.text();
    EXPECT_TRUE(texts.insert(layout.text()).second) << layout.text();
  }
  for (const char* text : {"dp 16", "dp 8, tp 2", "dp 8, tp 2 with sp", "dp 4, cp 4", "dp 4, blocks 2x2x1", "dp 4, blocks 1x4x1",
                           "dp 2, tp 2, pp 4 1f1b", "dp 2, blocks 2x2x2", "dp 1, tp 8 with sp, pp 2 1f1b"}) {
    EXPECT_TRUE(texts.contains(text)) << text;
  }
}

TEST(Layouts, KeepWhatTheUserGives) {
  const std::vector<LayoutChoice> all = meshes(space_of(16, 8, {{"tensor_parallel", "4"}, {"spatial", "1x1x1"}}));
  EXPECT_THAT(all, Each(Field(&LayoutChoice::tp, 4)));
  EXPECT_THAT(all, Contains(Field(&LayoutChoice::cp, 4)));
  const std::vector<LayoutChoice> of_one = variants(space_of(16, 8, {{"shard", "gradients"}}), all.front());
  EXPECT_THAT(of_one, Each(Field(&LayoutChoice::shard, "gradients")));
  EXPECT_EQ(of_one.size(), 2U);  // with and without recomputation
}

TEST(Layouts, VaryStateRecomputationAndSchedule) {
  const auto count = [](const LayoutChoice& mesh) { return variants(space_of(16, 8), mesh).size(); };
  EXPECT_EQ(count({.dp = 16}), 3U * 2);
  EXPECT_EQ(count({.dp = 1, .tp = 4, .cp = 4}), 2U);
  EXPECT_EQ(count({.dp = 4, .pp = 4}), 3U * 2 * 2);
}

TEST(Layouts, NameTheFlagsThatDiffer) {
  const LayoutChoice layout{.dp = 4, .tp = 2, .blocks = {2, 1, 1}, .sequence_parallel = true, .shard = "full", .micro_batch = 8};
  EXPECT_EQ(layout.flags(),
            "--set tensor_parallel=2 --set spatial=2x1x1 --set sequence_parallel=true --set shard=full --set micro_batch_size=8");
  EXPECT_EQ(layout.text(), "dp 4, tp 2 with sp, blocks 2x1x1, shard full, micro-batch 8");
  EXPECT_EQ(LayoutChoice().flags(), "");
}

}  // namespace
}  // namespace welkin::plan
