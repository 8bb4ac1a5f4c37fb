// SPDX-License-Identifier: Apache-2.0
#include "config/schema/checkpoint_dirs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace welkin::config {
namespace {

using ::testing::HasSubstr;

TEST(CheckpointDirs, ReadsNamePathIntervalAndNumber) {
  std::string problem;
  const auto dirs = parse_checkpoint_dirs({"fast:/local:50:2", "safe:/project/a:b:1000", "far:/tape"}, problem);
  EXPECT_EQ(problem, "");
  ASSERT_EQ(dirs.size(), 3u);
  EXPECT_EQ(dirs[0].name, "fast");
  EXPECT_EQ(dirs[0].path, "/local");
  EXPECT_EQ(dirs[0].interval, 50);
  EXPECT_EQ(dirs[0].keep, 2);
  EXPECT_EQ(dirs[1].path, "/project/a:b");
  EXPECT_EQ(dirs[1].interval, 1000);
  EXPECT_FALSE(dirs[1].keep || dirs[2].interval || dirs[2].keep);
}

TEST(CheckpointDirs, ReadsWhoseNeighbourHasACopy) {
  std::string problem;
  const auto dirs =
      parse_checkpoint_dirs({"fast:/local/{node}:50:2:neighbour", "other:/disk:neighbour", "near:/neighbour"}, problem);
  EXPECT_EQ(problem, "");
  ASSERT_EQ(dirs.size(), 3u);
  EXPECT_TRUE(dirs[0].neighbour && dirs[1].neighbour);
  EXPECT_FALSE(dirs[2].neighbour);
  EXPECT_EQ(dirs[0].path, "/local/{node}");
  EXPECT_EQ(dirs[0].interval, 50);
  EXPECT_EQ(dirs[0].keep, 2);
  EXPECT_EQ(dirs[1].path, "/disk");
}

TEST(CheckpointDirs, RefusesOtherForms) {
  for (const char* entry :
       {"", "fast", ":/local", "fast:", "fast:local", "fast:/local:0", "fast:/local:5:0", "fast::5", "fast:/local:neighbour:5",
        "fast:neighbour", "fast:/local:-2", "fast:/local:+5", "fast:/local:2.5", "fast:/local:5:2:9"}) {
    std::string problem;
    EXPECT_TRUE(parse_checkpoint_dirs({entry}, problem).empty());
    EXPECT_THAT(problem, HasSubstr("it is a name, an absolute path, numbers of at least 1, and perhaps :neighbour, not "))
        << entry;
  }
  for (const char* entry : {"fast:/other", "other:/local:9"}) {
    std::string problem;
    parse_checkpoint_dirs({"fast:/local", entry}, problem);
    EXPECT_THAT(problem, HasSubstr("two places have the same name or path")) << entry;
  }
}

}  // namespace
}  // namespace welkin::config
