// SPDX-License-Identifier: Apache-2.0
#include "core/fault/write_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/fault/wall_clock.h"
#include "core/file.h"

namespace welkin {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WatchedFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "welkin-watch-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_F(WatchedFiles, EveryStageOfAWriteIsAskedFor) {
  std::vector<WriteStage> stages;
  {
    const WriteWatchScope scope([&](WriteStage stage, const fs::path& /*path*/) {
      stages.push_back(stage);
      return 0;
    });
    write_file_atomically(folder_ / "a", "text");
  }
  EXPECT_THAT(stages, ElementsAre(WriteStage::Create, WriteStage::Write, WriteStage::Sync, WriteStage::Rename, WriteStage::Sync));
  write_file_atomically(folder_ / "a", "unwatched");
  EXPECT_EQ(stages.size(), 5u);
}

TEST_F(WatchedFiles, AStageThatFailsLeavesTheOldFileAndNoOther) {
  write_file_atomically(folder_ / "a", "old");
  for (const WriteStage failing : {WriteStage::Create, WriteStage::Write, WriteStage::Sync, WriteStage::Rename}) {
    const WriteWatchScope scope([&](WriteStage stage, const fs::path& /*path*/) { return stage == failing ? ENOSPC : 0; });
    std::string text;
    try {
      write_file_atomically(folder_ / "a", "new");
    } catch (const DataError& error) {
      text = error.what();
    }
    EXPECT_THAT(text, HasSubstr("No space left on device. Free space on that disk"));
    EXPECT_EQ(read_file(folder_ / "a", 100), "old");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
  }
}

TEST(WallClock, CanBeMadeWrong) {
  const auto before = std::chrono::system_clock::now();
  shift_wall_clock(std::chrono::hours(-24));
  EXPECT_LT(wall_now(), before - std::chrono::hours(23));
  shift_wall_clock(std::chrono::hours(24));
  EXPECT_GE(wall_now(), before);
}

}  // namespace
}  // namespace welkin
