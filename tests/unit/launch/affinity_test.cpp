// SPDX-License-Identifier: Apache-2.0
// Shares of cores on made-up machines.
#include "launch/affinity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/text.h"

namespace welkin::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two NUMA nodes of four cores with two hardware threads; the second threads are numbered 8 to 15, as Linux does.
CpuTopology two_nodes() {
  CpuTopology topology;
  for (int64_t core = 0; core < 8; ++core) {
    for (const int64_t number : {core, core + 8}) {
      topology.cpus.push_back({.number = number, .numa_node = core / 4, .core = core % 4, .package = core / 4});
    }
  }
  return topology;
}

std::vector<int64_t> all_cpus() {
  std::vector<int64_t> cpus;
  for (int64_t i = 0; i < 16; ++i) cpus.push_back(i);
  return cpus;
}

Binding bind(const std::string& mode, int64_t local_rank, int64_t local_size, bool shares_mask = true) {
  return choose_binding({.mode = mode, .local_rank = local_rank, .local_size = local_size, .shares_mask = shares_mask},
                        two_nodes(), all_cpus(), 16);
}

std::string error_of(const std::string& mode, int64_t local_rank, int64_t local_size) {
  try {
    bind(mode, local_rank, local_size);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Affinity, AutoGivesEachAShareOfOneNumaNode) {
  EXPECT_THAT(bind("auto", 0, 4).cpus, ElementsAre(0, 1, 8, 9));
  EXPECT_THAT(bind("auto", 3, 4).cpus, ElementsAre(6, 7, 14, 15));
  EXPECT_EQ(bind("auto", 3, 4).reason, "auto: cpus 6-7,14-15, NUMA node 1");
  EXPECT_EQ(bind("auto", 3, 4).threads, 4);
}

TEST(Affinity, AutoBindsNearTheGpu) {
  const auto near = [](std::vector<int64_t> nodes, int64_t local_rank, int64_t local_size) {
    return choose_binding(
        {.mode = "auto", .local_rank = local_rank, .local_size = local_size, .shares_mask = true, .gpu_nodes = std::move(nodes)},
        two_nodes(), all_cpus(), 16);
  };
  EXPECT_THAT(near({1, 0}, 0, 2).cpus, ElementsAre(4, 5, 6, 7, 12, 13, 14, 15));
  EXPECT_EQ(near({1, 0}, 0, 2).reason, "auto: cpus 4-7,12-15, NUMA node 1; its GPU sits at NUMA node 1");
  EXPECT_THAT(near({1, 1, 0, 0}, 1, 4).cpus, ElementsAre(6, 7, 14, 15));
  EXPECT_THAT(near({1, 1}, 0, 2).cpus, ElementsAre(0, 1, 2, 3, 8, 9, 10, 11)) << "no core is left over";
  EXPECT_EQ(near({1}, 0, 2).reason, "auto: cpus 0-3,8-11, NUMA node 0") << "of fewer GPUs than ranks nothing is known";
}

TEST(Affinity, SharesOfThreeRanksCoverEveryCpuOnce) {
  std::vector<int64_t> together;
  for (int64_t rank = 0; rank < 3; ++rank) {
    for (const int64_t cpu : bind("auto", rank, 3).cpus) together.push_back(cpu);
  }
  EXPECT_THAT(together, testing::UnorderedElementsAreArray(all_cpus()));
}

TEST(Affinity, AutoBindsNothingWhereThereAreMoreProcessesThanCores) {
  const Binding binding = bind("auto", 1, 17);
  EXPECT_TRUE(binding.cpus.empty());
  EXPECT_EQ(binding.threads, 1);
  EXPECT_EQ(binding.reason, "auto: not bound, 17 processes share 16 cores");
}

TEST(Affinity, AQuotaCountsAsFewerCores) {
  const Binding binding =
      choose_binding({.mode = "auto", .local_rank = 0, .local_size = 4, .shares_mask = true}, two_nodes(), all_cpus(), 4);
  EXPECT_EQ(binding.threads, 1);
  EXPECT_THAT(binding.cpus, ElementsAre(0, 1, 8, 9));
}

TEST(Affinity, WhatAnotherLauncherNarrowedStays) {
  const Binding binding = choose_binding({.mode = "auto", .local_rank = 1, .local_size = 2}, two_nodes(), {2, 3}, 2);
  EXPECT_TRUE(binding.cpus.empty());
  EXPECT_EQ(binding.threads, 2);
  EXPECT_EQ(binding.reason, "auto: the launcher chose cpus 2-3");
}

TEST(Affinity, OffSharesOnlyTheThreads) {
  EXPECT_TRUE(bind("off", 0, 4).cpus.empty());
  EXPECT_EQ(bind("off", 0, 4).threads, 4);
}

TEST(Affinity, AListNamesTheCpusOfEachRank) {
  EXPECT_THAT(bind("0-1,8:2,3", 1, 2).cpus, ElementsAre(2, 3));
  EXPECT_THAT(error_of("0-1", 1, 2),
              HasSubstr("the list has no CPUs for some ranks: bind=0-1, lists=1, processes of the node=2"));
  EXPECT_THAT(error_of("0-1:77", 1, 2), HasSubstr("this process may not use that CPU: bind=0-1:77, cpu=77, allowed=0-15"));
  EXPECT_THAT(error_of("cores", 0, 1), HasSubstr("the list of CPUs cannot be read: bind=cores"));
  EXPECT_THAT(error_of("3-1", 0, 1), HasSubstr("bind=3-1"));
}

TEST(Affinity, ListsKeepTheirMeaning) {
  for (const char* text : {"0", "0-3", "0,2,4-7", "5-6,9"}) EXPECT_EQ(cpu_list_text(parse_cpu_list(text, "test")), text);
}

TEST(Affinity, ThisMachineShowsTheCpusThatWeMayUse) {
  const auto allowed = allowed_cpus();
  const CpuTopology topology = read_topology();
  ASSERT_FALSE(allowed.empty());
  EXPECT_GE(topology.cpus.size(), allowed.size());
}

}  // namespace
}  // namespace welkin::launch
