// SPDX-License-Identifier: Apache-2.0
// Trees of control groups made of files.
#include "core/process/cgroup.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace welkin {
namespace {

constexpr uint64_t kGib = uint64_t{1} << 30;

class Cgroup : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/cgroup_XXXXXX";
    root_ = mkdtemp(name.data());
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  CgroupLimits limits() const { return cgroup_limits(root_); }

  std::filesystem::path root_;
};

TEST_F(Cgroup, WithoutAnyThereIsNoLimit) {
  EXPECT_EQ(limits().memory, CgroupLimits::kNone);
  EXPECT_EQ(limits().memory_left, CgroupLimits::kNone);
  EXPECT_EQ(limits().cores, 0);
}

TEST_F(Cgroup, OfAContainerStandsAtTheRoot) {
  write("proc/self/cgroup", "0::/../../docker/1234\n");
  write("sys/fs/cgroup/memory.max", std::to_string(2 * kGib) + "\n");
  write("sys/fs/cgroup/memory.current", std::to_string(kGib / 2) + "\n");
  write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(limits().memory, 2 * kGib);
  EXPECT_EQ(limits().memory_left, 2 * kGib - kGib / 2);
  EXPECT_DOUBLE_EQ(limits().cores, 1.5);
}

// As Slurm makes them: the limit may be the job's or the step's.
TEST_F(Cgroup, TheSmallestOfAllAboveHolds) {
  write("proc/self/cgroup", "0::/system.slice/job_5/step_0\n");
  write("sys/fs/cgroup/system.slice/job_5/memory.max", std::to_string(kGib));
  write("sys/fs/cgroup/system.slice/job_5/step_0/memory.max", std::to_string(4 * kGib));
  write("sys/fs/cgroup/system.slice/job_5/cpu.max", "max 100000");
  write("sys/fs/cgroup/system.slice/job_5/step_0/cpu.max", "400000 100000");
  write("sys/fs/cgroup/system.slice/job_6/memory.max", "1");
  EXPECT_EQ(limits().memory, kGib);
  EXPECT_DOUBLE_EQ(limits().cores, 4);
}

TEST_F(Cgroup, OfTheFirstVersionHasAFolderPerController) {
  write("proc/self/cgroup", "9:name=systemd:/x\n4:memory:/slurm/job_5\n2:cpu,cpuacct:/slurm/job_5\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/slurm/job_5/memory.limit_in_bytes", std::to_string(3 * kGib));
  write("sys/fs/cgroup/memory/slurm/job_5/memory.usage_in_bytes", std::to_string(4 * kGib));
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  write("sys/fs/cgroup/cpu,cpuacct/slurm/job_5/cpu.cfs_quota_us", "200000");
  write("sys/fs/cgroup/cpu,cpuacct/slurm/job_5/cpu.cfs_period_us", "100000");
  EXPECT_EQ(limits().memory, 3 * kGib);
  EXPECT_EQ(limits().memory_left, 0U);
  EXPECT_DOUBLE_EQ(limits().cores, 2);
}

TEST_F(Cgroup, WhatIsNoNumberIsNoLimit) {
  std::string deep = "0::";
  for (int i = 0; i < 5000; ++i) deep += "/a";
  write("proc/self/cgroup", "\n:\n::\nxx\n" + deep + "\n");
  write("sys/fs/cgroup/memory.max", "99999999999999999999999999");
  write("sys/fs/cgroup/cpu.max", "100000 0");
  EXPECT_EQ(limits().memory, CgroupLimits::kNone);
  EXPECT_EQ(limits().cores, 0);
  write("sys/fs/cgroup/memory.max", std::string(1 << 20, '7'));
  write("sys/fs/cgroup/cpu.max", "1 2 3");
  EXPECT_EQ(limits().memory, CgroupLimits::kNone);
  EXPECT_EQ(limits().cores, 0);
  std::filesystem::create_directories(root_ / "sys/fs/cgroup/a/memory.max");
  EXPECT_EQ(limits().memory, CgroupLimits::kNone);
}

}  // namespace
}  // namespace welkin
