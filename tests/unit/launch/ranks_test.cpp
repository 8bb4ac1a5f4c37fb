// SPDX-License-Identifier: Apache-2.0
// Environments as launchers leave them (shortened), the place that they mean, and what the broken ones say.
#include "launch/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <ostream>
#include <string>

#include "core/error.h"
#include "core/text.h"

namespace welkin::launch {
namespace {

using Variables = std::map<std::string, std::string>;
using testing::HasSubstr;

RankInfo place_in(const Variables& variables) {
  return find_ranks([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string error_in(const Variables& variables) {
  try {
    place_in(variables);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

struct Row {
  std::string name;
  Variables variables;
  std::string expected;  // describe(), address and port
};
std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

struct RowName {
  std::string operator()(const testing::TestParamInfo<Row>& row) const { return row.param.name; }
};

class Ranks : public testing::TestWithParam<Row> {};

TEST_P(Ranks, AreFound) {
  const RankInfo place = place_in(GetParam().variables);
  EXPECT_EQ(cat(describe(place), "; ", place.master_address, ":", place.master_port), GetParam().expected);
}

const Variables kSrun = {{"SLURM_STEP_ID", "0"},
                         {"SLURM_PROCID", "5"},
                         {"SLURM_NTASKS", "7"},
                         {"SLURM_LOCALID", "1"},
                         {"SLURM_NODEID", "1"},
                         {"SLURM_NNODES", "2"},
                         {"SLURM_STEP_TASKS_PER_NODE", "4,3"},
                         {"SLURM_STEP_NODELIST", "nid[000017-000018]"},
                         {"MASTER_PORT", "29501"}};

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

INSTANTIATE_TEST_SUITE_P(
    Launchers, Ranks,
    testing::Values(
        Row{"nothing", {}, "one process; :0"}, Row{"world_of_one", {{"WORLD_SIZE", "1"}}, "one process; :0"},
        Row{"the_tutorials_own",
            {{"WORLD_SIZE", "8"}, {"RANK", "5"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "n1"}, {"MASTER_PORT", "29500"}},
            "rank 5 of 8, local rank 1 of 8, node 0 of 1, from the environment; n1:29500"},
        Row{"sc23_names",
            {{"WORLD_SIZE", "2"},
             {"RANK", "0"},
             {"WORLD_RANK", "1"},
             {"MASTER_ADDR", "a"},
             {"MASTER_ADDRESS", "b"},
             {"MASTER_PORT", "1"}},
            "rank 1 of 2, local rank 1 of 2, node 0 of 1, from the environment; b:1"},
        Row{"torchrun",
            {{"TORCHELASTIC_RUN_ID", "none"},
             {"WORLD_SIZE", "8"},
             {"RANK", "6"},
             {"LOCAL_RANK", "2"},
             {"LOCAL_WORLD_SIZE", "4"},
             {"GROUP_RANK", "1"},
             {"GROUP_WORLD_SIZE", "2"},
             {"MASTER_ADDR", "n1"},
             {"MASTER_PORT", "40000"}},
            "rank 6 of 8, local rank 2 of 4, node 1 of 2, from torchrun; n1:40000"},
        Row{"torchrun_inside_srun",
            with(kSrun, {{"TORCHELASTIC_RUN_ID", "x"},
                         {"WORLD_SIZE", "4"},
                         {"RANK", "3"},
                         {"LOCAL_WORLD_SIZE", "2"},
                         {"MASTER_ADDR", "n1"}}),
            "rank 3 of 4, local rank 1 of 2, node 1 of 2, from torchrun; n1:29501"},
        Row{"srun", kSrun, "rank 5 of 7, local rank 1 of 3, node 1 of 2, from Slurm; nid000017:29501"},
        Row{"srun_with_export_ddp_vars",
            with(kSrun, {{"WORLD_SIZE", "7"}, {"RANK", "5"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "nid000017"}}),
            "rank 5 of 7, local rank 1 of 3, node 1 of 2, from Slurm; nid000017:29501"},
        Row{"sbatch_script_is_no_step", {{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "3"}}, "one process; :0"},
        Row{"sbatch_script_as_a_step",
            {{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}, {"SLURM_STEPID", "4294967291"}},
            "one process; :0"},
        Row{"mpirun_in_a_slurm_allocation",
            with(kSrun, {{"OMPI_COMM_WORLD_RANK", "2"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}),
            "rank 2 of 4, local rank 2 of 4, node 0 of 1, from Open MPI; 127.0.0.1:29501"},
        Row{"mpich",
            {{"PMI_RANK", "1"},
             {"PMI_SIZE", "4"},
             {"MPI_LOCALRANKID", "1"},
             {"MPI_LOCALNRANKS", "2"},
             {"MASTER_ADDR", "n"},
             {"MASTER_PORT", "7"}},
            "rank 1 of 4, local rank 1 of 2, node 0 of 2, from MPICH; n:7"},
        Row{"pmix_beside_slurm", with(kSrun, {{"PMIX_RANK", "5"}}),
            "rank 5 of 7, local rank 1 of 3, node 1 of 2, from Slurm; nid000017:29501"},
        Row{"flux",
            {{"FLUX_TASK_RANK", "3"},
             {"FLUX_JOB_SIZE", "4"},
             {"FLUX_TASK_LOCAL_ID", "1"},
             {"FLUX_JOB_NNODES", "2"},
             {"MASTER_ADDR", "n"},
             {"MASTER_PORT", "7"}},
            "rank 3 of 4, local rank 1 of 2, node 1 of 2, from Flux; n:7"},
        Row{"jsrun",
            {{"JSM_NAMESPACE_RANK", "1"}, {"JSM_NAMESPACE_SIZE", "2"}, {"JSM_NAMESPACE_LOCAL_RANK", "1"}, {"MASTER_PORT", "7"}},
            "rank 1 of 2, local rank 1 of 2, node 0 of 1, from jsrun; 127.0.0.1:7"},
        Row{"welkin_launch",
            with(kSrun, {{"WELKIN_LAUNCH", "1"},
                         {"WORLD_SIZE", "2"},
                         {"RANK", "1"},
                         {"LOCAL_RANK", "1"},
                         {"LOCAL_WORLD_SIZE", "2"},
                         {"MASTER_ADDR", "127.0.0.1"}}),
            "rank 1 of 2, local rank 1 of 2, node 0 of 1, from welkin launch; 127.0.0.1:29501"}),
    RowName());

class BrokenRanks : public testing::TestWithParam<Row> {};

TEST_P(BrokenRanks, NameTheVariables) { EXPECT_THAT(error_in(GetParam().variables), HasSubstr(GetParam().expected)); }

INSTANTIATE_TEST_SUITE_P(
    Environments, BrokenRanks,
    testing::Values(
        Row{"a_node_without_processes",
            {{"WORLD_SIZE", "2"}, {"RANK", "0"}, {"LOCAL_WORLD_SIZE", "0"}},
            "a node without processes is impossible: LOCAL_WORLD_SIZE=0"},
        Row{"size_without_rank",
            {{"WORLD_SIZE", "4"}},
            "[launch] rank or world size of this process is missing: WORLD_SIZE=4, RANK is not set. Set both, or unset "
            "WORLD_SIZE"},
        Row{"rank_without_size", {{"RANK", "1"}}, "RANK=1, WORLD_SIZE is not set"},
        Row{"no_number", {{"WORLD_SIZE", "four"}}, "not a number: WORLD_SIZE=four"},
        Row{"negative", {{"WORLD_SIZE", "2"}, {"RANK", "-1"}}, "not a number: RANK=-1"},
        Row{"rank_too_large", {{"WORLD_SIZE", "2"}, {"RANK", "2"}}, "RANK=2, WORLD_SIZE=2. Ranks count from 0"},
        Row{"left_over_world_size", with(kSrun, {{"WORLD_SIZE", "8"}, {"RANK", "5"}}),
            "two launchers contradict each other: RANK=5, WORLD_SIZE=8; SLURM_PROCID=5, SLURM_NTASKS=7"},
        Row{"local_rank_too_large",
            {{"WORLD_SIZE", "2"}, {"RANK", "0"}, {"LOCAL_RANK", "2"}},
            "LOCAL_RANK=2, processes of the node=2"},
        Row{"port_too_large", {{"WORLD_SIZE", "2"}, {"RANK", "0"}, {"MASTER_PORT", "70000"}}, "not a port: MASTER_PORT=70000"},
        Row{"no_address",
            {{"FLUX_TASK_RANK", "3"}, {"FLUX_JOB_SIZE", "4"}, {"FLUX_JOB_NNODES", "2"}},
            "MASTER_ADDR is not set, processes=4, nodes=2, launcher=Flux"},
        Row{"bad_node_list", with(kSrun, {{"SLURM_STEP_NODELIST", "nid[3-1]"}}), "SLURM_STEP_NODELIST=nid[3-1]"},
        Row{"bad_task_counts", with(kSrun, {{"SLURM_STEP_TASKS_PER_NODE", "4(x"}}), "SLURM_STEP_TASKS_PER_NODE=4(x"}),
    RowName());

TEST(Ranks, PortWithoutMasterPortDependsOnTheJob) {
  Variables one = kSrun;
  one.erase("MASTER_PORT");
  one["SLURM_JOB_ID"] = "1234";
  Variables other = one;
  other["SLURM_JOB_ID"] = "1235";
  EXPECT_EQ(place_in(one).master_port, place_in(one).master_port);
  EXPECT_NE(place_in(one).master_port, place_in(other).master_port);
  EXPECT_GE(place_in(one).master_port, 1024);
}

TEST(Ranks, TorchrunServesTheStoreItself) {
  const Variables torchrun = {{"TORCHELASTIC_RUN_ID", "none"},
                              {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                              {"TORCHELASTIC_RESTART_COUNT", "2"},
                              {"WORLD_SIZE", "2"},
                              {"RANK", "0"},
                              {"MASTER_ADDR", "localhost"},
                              {"MASTER_PORT", "1"}};
  EXPECT_TRUE(place_in(torchrun).store_is_served);
  EXPECT_EQ(place_in(torchrun).attempt, 2);
}

}  // namespace
}  // namespace welkin::launch
