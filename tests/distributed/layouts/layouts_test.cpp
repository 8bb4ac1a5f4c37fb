// SPDX-License-Identifier: Apache-2.0
// Every mesh of 2, 3 and 4 ranks against one process, in float64; and that the comparison sees an error.
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "core/error.h"
#include "parallel/shard/model_parallel_gradients.h"
#include "rank_processes.h"
#include "verify/layouts/layout_check.h"

namespace welkin::verify {
namespace {

const parallel::RankTest kSomeLayouts("some_layouts", [](parallel::Connection& connection) {
  model::Registry models;
  model::add_builtin_models(models);
  const auto cases =
      layout_cases(connection.world_size(), LayoutChoice::Some, axes_of({models.at("vit"), {parallel::vit_plan_of}}));
  ASSERT_FALSE(cases.empty());
  const LayoutRanks ranks{connection.rank(), [&](const std::string& name, parallel::GroupMembers members) {
                            return connection.make_group(name, std::move(members));
                          }};
  for (const LayoutReport& report : check_layouts({models.at("vit"), {parallel::vit_plan_of}}, ranks, cases, {})) {
    EXPECT_TRUE(report.passed()) << report.layout.text() << ": " << report.worst_name << " is off by " << report.worst;
  }
});

const parallel::RankTest kUnetLayouts("unet_layouts", [](parallel::Connection& connection) {
  const parallel::PlanEntry plan{parallel::unet_plan_of, parallel::Axis::Tp | parallel::kSpatial};
  model::Registry models;
  model::add_builtin_models(models);
  const auto cases = layout_cases(connection.world_size(), LayoutChoice::Some, axes_of({models.at("unet3d"), plan}));
  ASSERT_GE(cases.size(), 8U);  // data, tensor and pipeline parallel, blocks along two axes, on four ranks several at once
  const LayoutRanks ranks{connection.rank(), [&](const std::string& name, parallel::GroupMembers members) {
                            return connection.make_group(name, std::move(members));
                          }};
  for (const LayoutReport& report : check_layouts({models.at("unet3d"), plan}, ranks, cases, {})) {
    EXPECT_TRUE(report.passed()) << report.layout.text() << ": " << report.worst_name << " is off by " << report.worst;
  }
});

const parallel::RankTest kFieldModelLayouts("field_model_layouts", [](parallel::Connection& connection) {
  model::Registry models;
  model::add_builtin_models(models);
  const LayoutRanks ranks{connection.rank(), [&](const std::string& name, parallel::GroupMembers members) {
                            return connection.make_group(name, std::move(members));
                          }};
  const std::array<std::pair<const char*, parallel::PlanFactory>, 3> plans{
      {{"afno", parallel::afno_plan_of}, {"sfno", parallel::sfno_plan_of}, {"swin", parallel::swin_plan_of}}};
  for (const auto& [name, make] : plans) {
    const LayoutSubject subject{models.at(name), {make, parallel::Axis::Tp}};
    const auto cases = layout_cases(connection.world_size(), LayoutChoice::Some, axes_of(subject));
    ASSERT_GE(cases.size(), 4U);  // data, tensor and pipeline parallel
    for (const LayoutReport& report : check_layouts(subject, ranks, cases, {})) {
      EXPECT_TRUE(report.passed()) << name << ", " << report.layout.text() << ": " << report.worst_name << " is off by "
                                   << report.worst;
    }
  }
});

// The lecture's case: tensors split over two ranks, blocks over four, samples over two.
const parallel::RankTest kLecturesCase("lectures_case", [](parallel::Connection& connection) {
  model::Registry models;
  model::add_builtin_models(models);
  const LayoutRanks ranks{connection.rank(), [&](const std::string& name, parallel::GroupMembers members) {
                            return connection.make_group(name, std::move(members));
                          }};
  LayoutCase plain{.sizes = {.dp_replicate = 2, .tp = 2, .pp = 4}, .num_micro = 4, .depth = 8};
  plain.options.sequence_parallel = true;
  LayoutCase interleaved = plain;
  interleaved.schedule = config::PipelineSchedule::Interleaved;
  LayoutCase sharded = plain;
  sharded.shard = config::ShardStage::Optimizer;
  const auto reports = check_layouts({models.at("vit"), {parallel::vit_plan_of}}, ranks, {plain, interleaved, sharded}, {});
  ASSERT_EQ(reports.size(), 3U);
  for (const LayoutReport& report : reports) {
    EXPECT_TRUE(report.passed()) << report.layout.text() << ": " << report.worst_name << " is off by " << report.worst;
  }
});

// Fields cut along their height: blocks are runs of tokens, whose attention is that of context parallelism.
const parallel::RankTest kBlocksOfFields("blocks_of_fields", [](parallel::Connection& connection) {
  model::Registry models;
  model::add_builtin_models(models);
  const LayoutRanks ranks{connection.rank(), [&](const std::string& name, parallel::GroupMembers members) {
                            return connection.make_group(name, std::move(members));
                          }};
  LayoutCase ring{.sizes = {.h = 4}, .num_micro = 2, .dropout = 0.1};
  ring.options.context_mode = parallel::ContextMode::Ring;
  LayoutCase tensors{.sizes = {.tp = 2, .h = 2}};
  tensors.options.sequence_parallel = true;
  LayoutCase sharded{.sizes = {.dp_replicate = 2, .h = 2}, .shard = config::ShardStage::Full};
  sharded.options.context_mode = parallel::ContextMode::AllToAll;
  const LayoutCase plain{.sizes = {.dp_replicate = 2, .h = 2}};
  const auto reports = check_layouts({models.at("vit"), {parallel::vit_plan_of}}, ranks, {plain, ring, tensors, sharded}, {});
  ASSERT_EQ(reports.size(), 4U);
  for (const LayoutReport& report : reports) {
    EXPECT_TRUE(report.passed()) << report.layout.text() << ": " << report.worst_name << " is off by " << report.worst;
  }
});

// The tutorial's defect: the final norm works on a part of the tokens, and its gradient is not summed.
const parallel::RankTest kForgottenSum("forgotten_sum", [](parallel::Connection& connection) {
  model::Registry models;
  model::add_builtin_models(models);
  const LayoutRanks ranks{connection.rank(), [&](const std::string& name, parallel::GroupMembers members) {
                            return connection.make_group(name, std::move(members));
                          }};
  const auto forgetful = [](const config::ModelConfig& config, const model::ModelShape& shape, const parallel::Mesh& mesh,
                            const parallel::LayoutOptions& options) {
    parallel::Plan plan = parallel::vit_plan_of(config, shape, mesh, options);
    plan.rows.push_back({"norm.weight", parallel::AllTokens{}});
    return plan;
  };
  LayoutCase split_tokens;
  split_tokens.sizes.cp = 2;
  const auto reports = check_layouts({models.at("vit"), {forgetful}}, ranks, {split_tokens}, {});
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_FALSE(reports[0].passed());
  EXPECT_EQ(reports[0].worst_name, "gradient of norm.weight");
});

// A replica that drifts is named with its rank, on every rank.
const parallel::RankTest kDriftingReplica("drifting_replica", [](parallel::Connection& connection) {
  model::Registry models;
  model::add_builtin_models(models);
  config::ModelConfig config;
  config.embed_dim = 16;
  config.depth = 1;
  config.patch_size = 4;
  config.num_heads = 2;
  const model::ModelShape shape{.in_channels = 1, .out_channels = 1, .grid = {8, 8}};
  const model::ModelPtr vit = models.at("vit").build(config, shape);
  vit->initialise(1);
  parallel::ParamTable table = parallel::ParamTable::of(*vit);
  const auto make = [&](const std::string& name, parallel::GroupMembers members) {
    return connection.make_group(name, std::move(members));
  };
  const parallel::MeshGroups groups(make, connection.rank(), parallel::Mesh("tp-dp", {.dp_replicate = 2, .tp = 2}));
  parallel::apply_plan(parallel::vit_plan_of(config, shape, groups.mesh(), {}), *vit, table, groups);
  parallel::check_replicas(table, groups, "at the start");
  const auto drifted = [&](const char* name, int64_t rank) -> std::string {
    const at::NoGradGuard no_grad;
    if (connection.rank() == rank) table.at(name).local.view({-1})[3] += 1e-6;
    try {
      parallel::check_replicas(table, groups, "at step 7");
    } catch (const CommError& error) {
      return error.what();
    }
    return "no CommError";
  };
  // A shard is held by the ranks of the other dp place: 1 and 3.
  const std::string split = drifted("blocks.0.mlp.fc1.weight", 3);
  EXPECT_THAT(split,
              testing::HasSubstr(connection.rank() % 2 == 1 ? "differ at step 7: parameter=blocks.0.mlp.fc1.weight, ranks=[3]"
                                                            : "replicas differ on other ranks at step 7"));
  // Earlier in the table, and held by all.
  EXPECT_THAT(drifted("pos_embed", 2),
              testing::HasSubstr("replicas of a parameter differ at step 7: parameter=pos_embed, ranks=[2]"));
});

TEST(Layouts, AForgottenSumIsFound) { parallel::run_on_ranks("forgotten_sum", 2); }
TEST(Replicas, TheOneThatDriftsIsNamed) { parallel::run_on_ranks("drifting_replica", 4); }
TEST(Layouts, EqualOneProcessOnTwoRanks) { parallel::run_on_ranks("some_layouts", 2); }
TEST(Layouts, EqualOneProcessOnFourRanks) { parallel::run_on_ranks("some_layouts", 4); }

TEST(Layouts, OfBlocksOfFieldsEqualOneProcess) { parallel::run_on_ranks("blocks_of_fields", 4); }
TEST(Layouts, OfTheLectureEqualOneProcessOnSixteenRanks) { parallel::run_on_ranks("lectures_case", 16, 180); }

TEST(Layouts, OfTheUnetEqualOneProcessOnTwoRanks) { parallel::run_on_ranks("unet_layouts", 2); }
TEST(Layouts, OfTheUnetEqualOneProcessOnFourRanks) { parallel::run_on_ranks("unet_layouts", 4); }
TEST(Layouts, OfTheUnetEqualOneProcessOnEightRanks) { parallel::run_on_ranks("unet_layouts", 8, 180); }

TEST(Layouts, OfModelsOfFieldsEqualOneProcessOnTwoRanks) { parallel::run_on_ranks("field_model_layouts", 2); }
TEST(Layouts, OfModelsOfFieldsEqualOneProcessOnFourRanks) { parallel::run_on_ranks("field_model_layouts", 4); }

TEST(LayoutCases, CoverEveryMeshAndAllPairs) {
  EXPECT_GE(layout_cases(4, LayoutChoice::Some).size(), 6U);
  const auto pairs = layout_cases(4, LayoutChoice::Pairs);
  const auto all = layout_cases(4, LayoutChoice::All);
  EXPECT_GT(all.size(), pairs.size());
  bool ring_with_sequence_parallel = false;
  for (const LayoutCase& c : pairs) {
    EXPECT_EQ(c.sizes.dp_replicate * c.sizes.tp * c.sizes.cp, 4) << c.text();
    ring_with_sequence_parallel |= c.options.sequence_parallel && c.options.context_mode == parallel::ContextMode::Ring;
  }
  EXPECT_TRUE(ring_with_sequence_parallel);
}

}  // namespace
}  // namespace welkin::verify
