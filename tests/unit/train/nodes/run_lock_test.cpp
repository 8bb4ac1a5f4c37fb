// SPDX-License-Identifier: Apache-2.0
#include "train/nodes/run_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>

#include "scratch_folder.h"

namespace welkin::train {
namespace {

TEST(RunLock, OneAtATimeAndItSaysWho) {
  const ScratchFolder folder;
  std::optional<RunLock> first(folder.path());
  try {
    const RunLock second(folder.path());
    FAIL() << "two runs in one folder";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("another run works in the run folder: path=" + folder.path().string()));
    EXPECT_THAT(error.what(), testing::HasSubstr("by=process " + std::to_string(getpid()) + " on "));
  }
  first.reset();
  const RunLock next(folder.path());
}

}  // namespace
}  // namespace welkin::train
