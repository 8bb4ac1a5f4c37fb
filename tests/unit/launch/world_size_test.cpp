// SPDX-License-Identifier: Apache-2.0
#include "launch/world_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/error.h"

namespace welkin::launch {
namespace {

AnnouncedWorld world_in(std::map<std::string, std::string> environment) {
  return announced_world([&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(AnnouncedWorld, IsOneWithoutALauncher) { EXPECT_EQ(world_in({}).size, 1); }

TEST(AnnouncedWorld, IsWhatTheLauncherSays) {
  EXPECT_EQ(world_in({{"WORLD_SIZE", "4"}}).size, 4);
  EXPECT_EQ(world_in({{"OMPI_COMM_WORLD_SIZE", "2"}}).variable, "OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(world_in({{"PMI_SIZE", "8"}, {"WORLD_SIZE", "1"}}).size, 1);
}

TEST(AnnouncedWorld, CountsSlurmTasksOnlyInsideAStep) {
  EXPECT_EQ(world_in({{"SLURM_NTASKS", "16"}}).size, 1);
  EXPECT_EQ(world_in({{"SLURM_NTASKS", "16"}, {"SLURM_STEP_ID", "0"}}).size, 16);
}

TEST(AnnouncedWorld, RefusesWhatIsNoNumber) {
  for (const char* text : {"", "0", "-1", "4x", "99999999999999999999"}) {
    EXPECT_THAT([&] { world_in({{"WORLD_SIZE", text}}); }, testing::ThrowsMessage<ConfigError>(testing::HasSubstr("WORLD_SIZE")));
  }
}

}  // namespace
}  // namespace welkin::launch
