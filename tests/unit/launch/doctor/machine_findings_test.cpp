// SPDX-License-Identifier: Apache-2.0
// Machines made of files: what the doctor says of each.
#include "launch/doctor/machine_findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace welkin::launch {
namespace {

using testing::HasSubstr;

class MadeUpMachine : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/machine_XXXXXX";
    root_ = mkdtemp(name.data());
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void processor(const std::string& vendor, const std::string& flags) {
    write("proc/cpuinfo",
          "processor\t: 0\nvendor_id\t: " + vendor + "\nmodel name\t: Made Up 9000\nflags\t\t: fpu " + flags + "\n");
  }

  std::filesystem::path root_;
};

Finding found_of(const Findings& findings, const std::string& topic) {
  for (const Finding& finding : findings) {
    if (finding.topic == topic) return finding;
  }
  ADD_FAILURE() << "no finding of " << topic;
  return {};
}

TEST_F(MadeUpMachine, SaysWhereBfloat16Pays) {
  struct Row {
    const char *vendor, *flags;
    Verdict verdict;
  };
  for (const Row& row : {Row{"GenuineIntel", "avx512bw avx512dq avx512vl avx512_bf16 amx_bf16", Verdict::Good},
                         Row{"AuthenticAMD", "avx512bw avx512dq avx512vl avx512_bf16", Verdict::Good},
                         Row{"GenuineIntel", "avx512bw avx512dq avx512vl avx512_bf16", Verdict::Doubtful},
                         Row{"AuthenticAMD", "avx2 fma", Verdict::Doubtful}}) {
    processor(row.vendor, row.flags);
    const Finding finding = found_of(processor_findings(root_), "bfloat16");
    EXPECT_EQ(finding.verdict, row.verdict) << row.vendor << " " << row.flags;
    EXPECT_EQ(finding.remedy.empty(), row.verdict == Verdict::Good);
  }
}

TEST_F(MadeUpMachine, NamesTheProcessorAndTheWidestKernels) {
  processor("GenuineIntel", "avx2 fma avx512bw avx512dq avx512vl");
  EXPECT_EQ(found_of(processor_findings(root_), "processor").found, "Made Up 9000; kernels: avx512");
  processor("GenuineIntel", "sse2");
  EXPECT_EQ(found_of(processor_findings(root_), "processor").verdict, Verdict::Doubtful);
}

TEST_F(MadeUpMachine, TellsTheCgroupsMemoryFromTheMachines) {
  write("proc/meminfo", "MemTotal:       16777216 kB\nMemAvailable:   12582912 kB\n");
  write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  EXPECT_EQ(found_of(memory_findings(root_), "memory").found, "12.0 GiB free of 16.0 GiB");
  EXPECT_EQ(found_of(memory_findings(root_), "huge pages").verdict, Verdict::Good);
  write("sys/fs/cgroup/memory.max", "4294967296\n");
  EXPECT_EQ(found_of(memory_findings(root_), "memory limit").found, "4.0 GiB by the cgroup");
  write("sys/fs/cgroup/memory.max", "max\n");
  for (const Finding& finding : memory_findings(root_)) EXPECT_NE(finding.topic, "memory limit");
}

TEST_F(MadeUpMachine, FindsHugePagesThatAreOff) {
  write("proc/meminfo", "MemTotal: 4 kB\nMemAvailable: 4 kB\n");
  write("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  const Finding finding = found_of(memory_findings(root_), "huge pages");
  EXPECT_EQ(finding.verdict, Verdict::Doubtful);
  EXPECT_THAT(finding.remedy, HasSubstr("echo madvise"));
}

TEST_F(MadeUpMachine, RoundsAQuotaUp) {
  write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(found_of(core_findings(root_), "CPU quota").found, "2 cores by the cgroup");
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  for (const Finding& finding : core_findings(root_)) EXPECT_NE(finding.topic, "CPU quota");
}

TEST_F(MadeUpMachine, OfWhichNothingIsKnownIsNoError) {
  EXPECT_EQ(found_of(processor_findings(root_), "processor").found, "of an unknown make; kernels: portable");
  EXPECT_FALSE(memory_findings(root_).empty());
}

}  // namespace
}  // namespace welkin::launch
