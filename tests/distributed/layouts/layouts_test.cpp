// SPDX-License-Identifier: Apache-2.0
// Every mesh of 2, 3 and 4 ranks against one process, in float64; and that the comparison sees an error.
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "layout_ranks.h"
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
  const LayoutRanks ranks = tests::layout_ranks(connection);
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
  const LayoutRanks ranks = tests::layout_ranks(connection);
  for (const LayoutReport& report : check_layouts({models.at("unet3d"), plan}, ranks, cases, {})) {
    EXPECT_TRUE(report.passed()) << report.layout.text() << ": " << report.worst_name << " is off by " << report.worst;
  }
});

const parallel::RankTest kFieldModelLayouts("field_model_layouts", [](parallel::Connection& connection) {
  model::Registry models;
  model::add_builtin_models(models);
  const LayoutRanks ranks = tests::layout_ranks(connection);
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
  const LayoutRanks ranks = tests::layout_ranks(connection);
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
  const LayoutRanks ranks = tests::layout_ranks(connection);
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

// Fields cut along their width too, and over cp: blocks of 5 x 7 tokens, of which no two are alike. All pairs of options on two
// ranks, which is quick, and two settings of each mesh on four.
const parallel::RankTest kBlocksAlongTheWidth("blocks_along_the_width", [](parallel::Connection& connection) {
  model::Registry models;
  model::add_builtin_models(models);
  const LayoutRanks ranks = tests::layout_ranks(connection);
  const std::array<std::pair<const char*, parallel::PlanFactory>, 3> plans{
      {{"vit", parallel::vit_plan_of}, {"afno", parallel::afno_plan_of}, {"swin", parallel::swin_plan_of}}};
  for (const auto& [name, make] : plans) {
    const LayoutSubject subject{models.at(name), {make, parallel::Axis::Tp | parallel::Axis::Cp | parallel::kSpatial}};
    const LayoutChoice choice = connection.world_size() == 2 ? LayoutChoice::Pairs : LayoutChoice::Some;
    auto cases = layout_cases(connection.world_size(), choice, axes_of(subject));
    const auto is_other = [](const LayoutCase& c) { return c.sizes.w == 1 && (c.sizes.h == 1 || c.sizes.cp == 1); };
    std::erase_if(cases, is_other);
    ASSERT_GE(cases.size(), 10U);
    for (const LayoutReport& report : check_layouts(subject, ranks, cases, {})) {
      EXPECT_TRUE(report.passed()) << name << ", " << report.layout.text() << ": " << report.worst_name << " is off by "
                                   << report.worst << report.refused;
    }
  }
});

// One step under each mesh, the others under the next one.
const parallel::RankTest kMoves("moved_checkpoints", [](parallel::Connection& connection) {
  model::Registry models;
  model::add_builtin_models(models);
  const LayoutSubject subject{models.at("vit"), {parallel::vit_plan_of}};
  const LayoutRanks ranks = tests::layout_ranks(connection);
  const auto moves = layout_moves(layout_cases(connection.world_size(), LayoutChoice::Some, axes_of(subject)));
  ASSERT_GE(moves.size(), 4U);
  const auto folder = std::filesystem::path(parallel::rank_scratch_folder()) / "moves";
  for (const LayoutReport& report : check_moves(subject, ranks, moves, folder, {})) {
    EXPECT_TRUE(report.passed()) << report.text() << ": " << report.worst_name << " is off by " << report.worst;
  }
});

// The tutorial's defect: the final norm works on a part of the tokens, and its gradient is not summed.
const parallel::RankTest kForgottenSum("forgotten_sum", [](parallel::Connection& connection) {
  model::Registry models;
  model::add_builtin_models(models);
  const LayoutRanks ranks = tests::layout_ranks(connection);
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
              testing::HasSubstr(connection.rank() % 2 == 1
                                     ? "differ at step 7: parameter=blocks.0.mlp.fc1.weight, ranks=[1, 3], of which nobody can"
                                     : "replicas differ on other ranks at step 7"));
  // Earlier in the table, and held by all.
  EXPECT_THAT(
      drifted("pos_embed", 2),
      testing::HasSubstr("replicas of a parameter differ at step 7: parameter=pos_embed, ranks=[2] against the 3 others"));
});

TEST(Layouts, AForgottenSumIsFound) { parallel::run_on_ranks("forgotten_sum", 2); }
TEST(Replicas, TheOneThatDriftsIsNamed) { parallel::run_on_ranks("drifting_replica", 4); }
TEST(Layouts, EqualOneProcessOnTwoRanks) { parallel::run_on_ranks("some_layouts", 2); }
TEST(Layouts, EqualOneProcessOnFourRanks) { parallel::run_on_ranks("some_layouts", 4); }

TEST(Layouts, OfBlocksOfFieldsEqualOneProcess) { parallel::run_on_ranks("blocks_of_fields", 4); }
TEST(Layouts, OfTheLectureEqualOneProcessOnSixteenRanks) { parallel::run_on_ranks("lectures_case", 16, 180); }

TEST(Layouts, ContinueFromCheckpointsOfOthersOnTwoRanks) { parallel::run_on_ranks("moved_checkpoints", 2); }
TEST(Layouts, ContinueFromCheckpointsOfOthersOnFourRanks) { parallel::run_on_ranks("moved_checkpoints", 4); }

TEST(Layouts, OfTheUnetEqualOneProcessOnTwoRanks) { parallel::run_on_ranks("unet_layouts", 2); }
TEST(Layouts, OfBlocksAlongTheWidthEqualOneProcessOnTwoRanks) { parallel::run_on_ranks("blocks_along_the_width", 2, 180); }
TEST(Layouts, OfBlocksAlongTheWidthEqualOneProcessOnFourRanks) { parallel::run_on_ranks("blocks_along_the_width", 4, 180); }

TEST(Layouts, OfTheUnetEqualOneProcessOnFourRanks) { parallel::run_on_ranks("unet_layouts", 4, 180); }
TEST(Layouts, OfTheUnetEqualOneProcessOnEightRanks) { parallel::run_on_ranks("unet_layouts", 8, 180); }

TEST(Layouts, OfModelsOfFieldsEqualOneProcessOnTwoRanks) { parallel::run_on_ranks("field_model_layouts", 2); }
TEST(Layouts, OfModelsOfFieldsEqualOneProcessOnFourRanks) { parallel::run_on_ranks("field_model_layouts", 4, 180); }

TEST(LayoutCases, CoverEveryMeshAndAllPairs) {
  EXPECT_GE(layout_cases(4, LayoutChoice::Some).size(), 6U);
  const auto pairs = layout_cases(4, LayoutChoice::Pairs);
  const auto all = layout_cases(4, LayoutChoice::All);
  EXPECT_GT(all.size(), pairs.size());
  const auto parts_of = [](const std::vector<LayoutCase>& cases) {
    std::set<std::pair<std::string, std::string>> parts;
    for (const LayoutCase& c : cases) {
      EXPECT_EQ(c.sizes.dp_replicate * c.sizes.tp * c.sizes.cp, 4) << c.text();
      std::vector<std::string> words;
      std::istringstream text(std::regex_replace(c.text(), std::regex(" \\("), ", ("));  // the order of tp and cp is a choice
      for (std::string word; std::getline(text, word, ',');) words.push_back(word);
      for (size_t a = 0; a < words.size(); ++a) {
        for (size_t b = a + 1; b < words.size(); ++b) parts.emplace(words[a], words[b]);
      }
    }
    return parts;
  };
  const auto covered = parts_of(pairs);
  for (const auto& [one, other] : parts_of(all)) EXPECT_TRUE(covered.contains({one, other})) << one << " with" << other;
}

TEST(LayoutCases, LeaveNoPairToARefusedOne) {
  const auto is_refused = [](const LayoutCase& c) { return c.sizes.tp == 4 || c.weights; };
  bool names_refused_mesh = false, has_pair = false;
  for (const LayoutCase& c : layout_cases(4, LayoutChoice::Pairs, parallel::Axis::Tp | parallel::Axis::Cp, is_refused)) {
    names_refused_mesh |= c.sizes.tp == 4;
    EXPECT_TRUE(c.sizes.tp == 4 || !c.weights) << c.text();
    has_pair |= c.sizes.tp == 2 && c.options.sequence_parallel && c.options.context_mode == parallel::ContextMode::Ring;
  }
  EXPECT_TRUE(names_refused_mesh);
  EXPECT_TRUE(has_pair);
}

TEST(LayoutCases, OfASampleFollowFromTheSeed) {
  const parallel::AxisSet axes = parallel::Axis::Tp | parallel::Axis::Cp | parallel::Axis::Pp;
  const auto known = layout_cases(8, LayoutChoice::Pairs, axes);
  const auto texts = [&](uint64_t seed) {
    std::vector<std::string> all;
    for (const LayoutCase& c : sampled_cases(8, 200, seed, axes, known)) all.push_back(c.text());
    return all;
  };
  const std::vector<std::string> sample = texts(7);
  EXPECT_EQ(sample, texts(7));
  EXPECT_NE(sample, texts(8));
  ASSERT_EQ(sample.size(), 200U);
  std::set<std::string> distinct(sample.begin(), sample.end());
  EXPECT_EQ(distinct.size(), sample.size());
  for (const LayoutCase& c : known) EXPECT_FALSE(distinct.contains(c.text())) << c.text();
  for (const char* part : {"zero_bubble", "interleaved", "8 blocks", "in 2 groups", "4 micro-batches", "(cp-tp-dp)"}) {
    EXPECT_TRUE(std::ranges::any_of(sample, [&](const std::string& text) { return text.find(part) != text.npos; })) << part;
  }
}

TEST(LayoutCases, OfAModelWithFewOptionsAreFew) {
  const auto known = layout_cases(2, LayoutChoice::All, parallel::Axis::Tp);
  const auto sample = sampled_cases(2, 1000, 1, parallel::Axis::Tp, known);
  EXPECT_LT(sample.size(), 100U);
}

// Ranks that do not divide 8 have the same number of samples each.
TEST(LayoutCases, TakeBatchesThatRanksCanShare) {
  for (const int64_t ranks : {2, 3, 5, 6, 8, 16}) {
    for (const LayoutCase& c : layout_cases(ranks, LayoutChoice::Some)) {
      EXPECT_EQ(c.batch % c.sizes.dp_replicate, 0) << c.text();
      EXPECT_GE(c.batch, 8);
    }
  }
}

TEST(LayoutMoves, GoRoundAllMeshesOnOneProblem) {
  const auto moves =
      layout_moves(layout_cases(4, LayoutChoice::Some, parallel::Axis::Tp | parallel::Axis::Cp | parallel::Axis::Pp));
  ASSERT_GT(moves.size(), 4U);
  for (size_t i = 0; i < moves.size(); ++i) {
    const LayoutCase &before = moves[i].before, &after = moves[i].after;
    EXPECT_EQ(before.depth, after.depth);
    EXPECT_EQ(before.dropout, after.dropout);
    EXPECT_EQ(before.joint_qkv, after.joint_qkv);
    const LayoutCase& next = moves[(i + 1) % moves.size()].before;
    EXPECT_EQ(after.sizes.dp_replicate, next.sizes.dp_replicate);
    EXPECT_EQ(after.sizes.tp, next.sizes.tp);
    EXPECT_EQ(after.sizes.pp, next.sizes.pp);
  }
}

}  // namespace
}  // namespace welkin::verify
