// SPDX-License-Identifier: Apache-2.0
#include "train/device_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "core/host.h"

namespace welkin::train {
namespace {

constexpr double kGigabyte = 1 << 30;

// The management library would be asked by another number wherever devices are reordered; what stands in for the runtime here
// records by which number it is asked.
TEST(TutorialDefects, D27MemoryIsThatOfTheRunsOwnDevice) {
  std::vector<int> asked;
  const DeviceMemory runtime = [&](c10::DeviceIndex index) {
    asked.push_back(index);
    return (int64_t{index} + 1) << 30;
  };
  setenv("CUDA_VISIBLE_DEVICES", "3,2,1,0", 1);
  EXPECT_EQ(memory_in_use_gb({at::kCUDA, 2}, runtime), 3.0);
  EXPECT_EQ(memory_in_use_gb({at::kCUDA, 0}, runtime), 1.0);
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_THAT(asked, ::testing::ElementsAre(2, 0)) << "torch's own numbers, whatever the order of the devices";
}

TEST(DeviceMemoryLines, OfACpuAreTheProcess) {
  const double before = static_cast<double>(resident_bytes()) / kGigabyte;
  const double now = memory_in_use_gb(at::kCPU);
  EXPECT_GE(now, 0.5 * before);
  EXPECT_LE(now, 2 * before);
  EXPECT_THAT(scaffolding_memory_line(at::kCPU), ::testing::MatchesRegex("Scaffolding memory high watermark: [0-9.]+ GB\\."));
  EXPECT_THAT(forward_pass_memory_line(at::kCPU), ::testing::MatchesRegex(" Memory usage after forward pass: [0-9.]+ GB\\."));
}

}  // namespace
}  // namespace welkin::train
