// SPDX-License-Identifier: Apache-2.0
#include "core/process/host.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <vector>

namespace welkin {
namespace {

TEST(Host, UsableCoresFollowTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(usable_cores(), 1);
  sched_setaffinity(0, sizeof(before), &before);
  EXPECT_GE(usable_cores(), 1);
  EXPECT_LE(usable_cores(), CPU_COUNT(&before));
}

TEST(Host, TheRunningKernelHasAName) {
  EXPECT_EQ(boot_id().size(), 36U) << "a UUID";
  EXPECT_EQ(boot_id(), boot_id());
}

TEST(Host, MemoryIsCounted) {
  const uint64_t before = resident_bytes();
  const std::vector<char> touched(size_t{64} << 20, 'x');
  EXPECT_GE(resident_bytes(), before + touched.size() / 2);
  EXPECT_GE(peak_resident_bytes(), touched.size());
}

TEST(Host, AProcessIsBoundByItsLimitOrTheMachine) {
  const ProcessMemory machine = process_memory();
  EXPECT_GT(machine.peak, 0U);
  EXPECT_LE(machine.peak, peak_resident_bytes());
  EXPECT_GT(machine.limit, machine.peak);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  if (before.rlim_cur != RLIM_INFINITY) GTEST_SKIP() << "addresses are limited already";
  const rlimit bound{rlim_t{1} << 60, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &bound), 0);
  const ProcessMemory limited = process_memory();
  setrlimit(RLIMIT_AS, &before);
  EXPECT_EQ(limited.limit, uint64_t{1} << 60);
  EXPECT_GT(limited.peak, resident_bytes());
}

TEST(Host, HasAName) { EXPECT_FALSE(host_name().empty()); }

TEST(Host, FormatsBytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes((uint64_t{1} << 20) - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(uint64_t{139} << 30), "139 GiB");
}

}  // namespace
}  // namespace welkin
