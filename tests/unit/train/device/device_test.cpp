// SPDX-License-Identifier: Apache-2.0
// Which GPU a rank takes, and that it is the current one of the thread that trains. The guard here counts devices without a
// driver.
#include "train/device/device.h"

#include <c10/core/impl/FakeGuardImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace welkin::train {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(GpuOfRank, FollowsThePlaceWithinTheNode) {
  for (int64_t local = 0; local < 4; ++local) {
    EXPECT_EQ(gpu_of_rank(local, 4, 4), local);
    EXPECT_EQ(gpu_of_rank(local, 4, 8), local) << "GPUs may be left over";
    EXPECT_EQ(gpu_of_rank(local, 4, 1), 0) << "a launcher that binds shows each rank its own";
  }
  EXPECT_THAT([] { gpu_of_rank(0, 4, 2); },
              ThrowsMessage<ConfigError>(HasSubstr("[device] more ranks than GPUs on this node: ranks=4, GPUs=2")));
}

using Guard = c10::impl::FakeGuardImpl<c10::kCUDA>;

class CurrentDevice : public ::testing::Test {
 protected:
  ~CurrentDevice() override { slot_.store(before_); }

  void install() { slot_.store(&guard_); }

 private:
  std::atomic<const c10::impl::DeviceGuardImplInterface*>& slot_ =
      c10::impl::device_guard_impl_registry[static_cast<size_t>(c10::kCUDA)];
  const c10::impl::DeviceGuardImplInterface* before_ = slot_.load();
  Guard guard_;
};

TEST_F(CurrentDevice, IsTheOneThatWasChosen) {
  install();
  Guard::setDeviceIndex(0);
  make_current({at::kCUDA, 3});
  EXPECT_EQ(Guard::getDeviceIndex(), 3);
  make_current(at::kCPU);
  EXPECT_EQ(Guard::getDeviceIndex(), 3);
}

TEST_F(CurrentDevice, OfAGpuThatCannotBeHadIsAnError) {
  EXPECT_THAT(
      [] {
        make_current({at::kCUDA, 1});
      },
      ThrowsMessage<ConfigError>(HasSubstr("[device] the GPU cannot be used: device=cuda:1, reason=")));
}

}  // namespace
}  // namespace welkin::train
