// SPDX-License-Identifier: Apache-2.0
// The tutorials' defects in choosing samples are absent (docs/reference/defects.md). Where an option brings one back, the same
// check is run with it and must find it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>
#include <vector>

#include "config/resolve/resolve.h"
#include "data/datasets/open.h"
#include "data/formats/npy_file.h"
#include "data/pipeline/pipeline.h"
#include "data/sample/field_pairs.h"
#include "data/sample/orientation.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

// Boxes of 6 and 5 cells, crops of 4: three and two starts per axis.
config::RunConfig box_run(const std::string& rules = "") {
  return config::from_yaml(
      "base: {model: unet3d, scales: 2, data_size: 4, box_size: [6, 5], Nsamples: 24, Nsamples_val: 24, global_batch_size: 4, "
      "num_epochs: 1, data_loader_config: synthetic" +
          rules + "}\n",
      "test", 1);
}

std::vector<SamplePlan> plans_of_epoch(const config::RunConfig& config, Split split, int64_t epoch) {
  const auto dataset = (config.data.dataset == "era5" ? open_fields : open_boxes)(config, split);
  const bool is_fixed = split == Split::Valid && config.rules.validation_rule == config::ValidationRule::EverySample;
  const Sampler sampler(dataset->size(), is_fixed ? Order::Sequential : Order::Shuffled, config.loop.seed);
  std::vector<SamplePlan> plans;
  for (int64_t i = 0; i < dataset->size(); ++i) plans.push_back(dataset->plan(sampler.at(epoch, i), whole(dataset->spec())));
  return plans;
}

std::vector<SamplePlan> training_plans(const config::RunConfig& config) {
  std::vector<SamplePlan> plans;
  for (int64_t epoch = 0; epoch < 40; ++epoch) {
    for (SamplePlan& plan : plans_of_epoch(config, Split::Train, epoch)) plans.push_back(plan);
  }
  return plans;
}

bool reaches_the_last_start(const config::RunConfig& config) {
  std::array<int64_t, 3> most{};
  for (const SamplePlan& plan : training_plans(config)) {
    for (size_t axis = 0; axis < 3; ++axis) most[axis] = std::max(most[axis], plan.origin[axis]);
  }
  return most == std::array<int64_t, 3>{2, 2, 2};
}

TEST(TutorialDefects, D18LastCropOffsetIsDrawn) {
  EXPECT_TRUE(reaches_the_last_start(box_run()));
  EXPECT_FALSE(reaches_the_last_start(box_run(", compat: sc22"))) << "the check does not see the defect";
  EXPECT_FALSE(reaches_the_last_start(box_run(", crop_rule: exclusive")));
  EXPECT_TRUE(reaches_the_last_start(box_run(", compat: sc22, crop_rule: inclusive"))) << "the rule is switched back alone";
}

struct Turns {
  std::set<int32_t> rotations, reflections;
};

Turns drawn_turns(const config::RunConfig& config) {
  Turns turns;
  for (const SamplePlan& plan : training_plans(config)) {
    const bool proper = determinant(orientation(plan.orientation)) == 1;
    (proper ? turns.rotations : turns.reflections).insert(plan.orientation);
  }
  return turns;
}

TEST(TutorialDefects, D16OnlyRotationsAndAllOfThem) {
  const Turns ours = drawn_turns(box_run());
  EXPECT_EQ(ours.rotations.size(), 24u);
  EXPECT_EQ(ours.reflections.size(), 0u);
  for (const char* old : {", compat: sc21", ", compat: sc22", ", augment: tutorial"}) {
    const Turns tutorial = drawn_turns(box_run(old));
    EXPECT_EQ(tutorial.rotations.size(), 16u) << old;
    EXPECT_EQ(tutorial.reflections.size(), 8u) << old;
  }
}

// Rotations that are computed and thrown away leave the flips: four maps, two of them reflections.
TEST(TutorialDefects, D15RotationsAreNotDiscarded) {
  EXPECT_EQ(drawn_turns(box_run()).rotations.size(), 24u);
  const Turns flips = drawn_turns(box_run(", augment: flips"));
  EXPECT_EQ(flips.rotations.size(), 2u);
  EXPECT_EQ(flips.reflections.size(), 2u);
}

std::vector<std::array<int64_t, 5>> validation_crops(const config::RunConfig& config, int64_t epoch) {
  std::vector<std::array<int64_t, 5>> crops;
  for (const SamplePlan& plan : plans_of_epoch(config, Split::Valid, epoch)) {
    crops.push_back({plan.index, plan.origin[0], plan.origin[1], plan.origin[2], plan.orientation});
  }
  return crops;
}

bool is_augmented(const std::vector<std::array<int64_t, 5>>& crops) {
  for (const auto& crop : crops) {
    if (crop[4] != 0) return true;
  }
  return false;
}

TEST(TutorialDefects, D19ValidationIsFixedAndUnaugmented) {
  const auto ours = box_run();
  EXPECT_EQ(validation_crops(ours, 0), validation_crops(ours, 1));
  EXPECT_FALSE(is_augmented(validation_crops(ours, 0)));
  for (const char* old : {", compat: sc22", ", validation_rule: drawn"}) {
    const auto tutorial = box_run(old);
    EXPECT_NE(validation_crops(tutorial, 0), validation_crops(tutorial, 1)) << old;
    EXPECT_TRUE(is_augmented(validation_crops(tutorial, 0))) << old;
  }
}

// Draws of one step of a run of `num_ranks`, each rank drawing from `key_of(position in the epoch, position within the rank)`.
template <typename Key>
size_t different_draws(int64_t num_ranks, int64_t per_rank, Key key_of) {
  std::set<uint64_t> draws;
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    for (int64_t i = 0; i < per_rank; ++i) draws.insert(key_of(rank * per_rank + i, i).draw);
  }
  return draws.size();
}

TEST(TutorialDefects, D17RanksDrawDifferentCrops) {
  const Sampler sampler(64, Order::Shuffled, 12345);
  const auto ours = [&](int64_t in_epoch, int64_t) { return sampler.at(0, in_epoch); };
  const auto same_seed_on_every_rank = [&](int64_t, int64_t in_rank) { return sampler.at(0, in_rank); };
  EXPECT_EQ(different_draws(4, 16, ours), 64u);
  EXPECT_EQ(different_draws(4, 16, same_seed_on_every_rank), 16u) << "the check does not see the defect";
}

// Idle for an epoch or not: the order of an epoch is a function of its number, not of what was drawn before.
TEST(TutorialDefects, D34AnEpochsOrderDoesNotDependOnEpochsSeen) {
  const auto order = [](const Sampler& sampler) {
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < sampler.size(); ++i) indices.push_back(sampler.at(5, i).index);
    return indices;
  };
  const Sampler idle(50, Order::Shuffled, 333);
  const Sampler busy(50, Order::Shuffled, 333);
  for (int64_t epoch = 0; epoch < 5; ++epoch) busy.at(epoch, 0);
  EXPECT_EQ(order(idle), order(busy));
}

// Years of 4 and 6 steps; the input and target steps of every sample.
class TutorialFieldDefects : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* split : {"train", "valid"}) {
      std::filesystem::create_directory(folder_ / split);
      write_field_file(folder_ / split / "2001.h5", {.steps = 4});
      write_field_file(folder_ / split / "2002.h5", {.steps = 6});
    }
    write_npy(folder_ / "means.npy", {1, 2, 1, 1}, counting(2));
    write_npy(folder_ / "stds.npy", {1, 2, 1, 1}, std::vector<float>{1, 2});
  }

  config::RunConfig run(const std::string& rules = "") const {
    const std::string root = folder_.path().string();
    return config::from_yaml(
        "base: {model: vit, img_size: [4, 4], patch_size: 4, n_in_channels: 2, n_out_channels: 2, "
        "global_batch_size: 3, num_iters: 10, train_data_path: '" +
            root + "/train', valid_data_path: '" + root + "/valid', global_means_path: '" + root +
            "/means.npy', global_stds_path: '" + root + "/stds.npy'" + rules + "}\n",
        "test", 1);
  }

  // How often each (file, input step) is a sample.
  static std::map<std::pair<int64_t, int64_t>, int> pairs(const config::RunConfig& config) {
    std::map<std::pair<int64_t, int64_t>, int> counts;
    for (const SamplePlan& plan : plans_of_epoch(config, Split::Train, 0)) ++counts[{plan.file, plan.time}];
    return counts;
  }

  DataFolder folder_;
};

TEST_F(TutorialFieldDefects, D24EveryPairOfEveryYearOnce) {
  using ::testing::Pair;
  using ::testing::UnorderedElementsAre;
  EXPECT_THAT(pairs(run()),
              UnorderedElementsAre(Pair(Pair(0, 0), 1), Pair(Pair(0, 1), 1), Pair(Pair(0, 2), 1), Pair(Pair(1, 0), 1),
                                   Pair(Pair(1, 1), 1), Pair(Pair(1, 2), 1), Pair(Pair(1, 3), 1), Pair(Pair(1, 4), 1)));
  for (const char* old : {", compat: sc23", ", compat: dl4sci25", ", pair_rule: first_file"}) {
    EXPECT_THAT(pairs(run(old)),
                UnorderedElementsAre(Pair(Pair(0, 1), 3), Pair(Pair(0, 2), 1), Pair(Pair(1, 1), 3), Pair(Pair(1, 2), 1)))
        << old;
  }
}

TEST(TutorialDefects, D24AShorterLaterYearIsNotReadBeyondItsEnd) {
  const FieldPairs ours({6, 4}, {.lead = 1});
  const FieldPairs old({6, 4}, {.lead = 1, .rules = Rules::Tutorial});
  const auto all_exist = [](const FieldPairs& pairs) {
    for (int64_t i = 0; i < pairs.count(); ++i) {
      if (!pairs.exists(pairs.at(i))) return false;
    }
    return true;
  };
  EXPECT_TRUE(all_exist(ours));
  EXPECT_FALSE(all_exist(old));
}

// What one validation reads: the indices, over `ranks` shards.
std::multiset<int64_t> validated(int64_t samples, int64_t batch, int64_t ranks, bool drop_last, ShardRule shard_rule) {
  std::multiset<int64_t> seen;
  const Sampler sampler(samples, Order::Sequential, 0);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const EpochPlan plan({.num_samples = samples,
                          .global_batch = batch,
                          .micro_batch = batch,
                          .shard = rank,
                          .num_shards = ranks,
                          .drop_last = drop_last,
                          .shard_rule = shard_rule});
    for (int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
      const MicroBatch place = plan.at(0, step, 0);
      for (int64_t i = 0; i < place.count; ++i) seen.insert(sampler.at(0, place.first_position + i).index);
    }
  }
  return seen;
}

TEST(TutorialDefects, D25ValidationNeitherDropsNorRepeatsSamples) {
  const std::multiset<int64_t> every{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  for (const int64_t ranks : {1, 2, 4}) {
    EXPECT_EQ(validated(10, 4, ranks, /*drop_last=*/false, ShardRule::Exact), every) << ranks << " ranks";
  }
  EXPECT_EQ(validated(10, 4, 1, /*drop_last=*/true, ShardRule::Padded).size(), 8u) << "two are dropped";
  EXPECT_EQ(validated(10, 4, 4, /*drop_last=*/true, ShardRule::Padded).count(0), 2u) << "the first is repeated";
}

// DistributedSampler's length, and DALI's: ceil(N / R) or N // R samples per rank, then ceil or floor over the local batch.
TEST(ShardRule, StepsAreThoseOfTheTutorialsLoaders) {
  const auto steps = [](int64_t samples, int64_t ranks, int64_t local, bool drop_last, ShardRule shard_rule) {
    return EpochPlan({.num_samples = samples,
                      .global_batch = ranks * local,
                      .micro_batch = local,
                      .num_shards = ranks,
                      .drop_last = drop_last,
                      .shard_rule = shard_rule})
        .steps_per_epoch();
  };
  for (const int64_t samples : {31, 32, 33, 100, 1000, 37960}) {
    for (const int64_t ranks : {1, 3, 4, 8}) {
      for (const int64_t local : {1, 2, 3}) {
        const int64_t padded = (samples + ranks - 1) / ranks;
        const int64_t truncated = samples / ranks;
        EXPECT_EQ(steps(samples, ranks, local, true, ShardRule::Padded), padded / local);
        EXPECT_EQ(steps(samples, ranks, local, false, ShardRule::Padded), (padded + local - 1) / local);
        EXPECT_EQ(steps(samples, ranks, local, true, ShardRule::Truncated), truncated / local);
        EXPECT_EQ(steps(samples, ranks, local, false, ShardRule::Truncated), (truncated + local - 1) / local);
        EXPECT_EQ(steps(samples, ranks, local, true, ShardRule::Exact), samples / (ranks * local));
      }
    }
  }
  EXPECT_EQ(steps(31, 4, 8, true, ShardRule::Padded), 1) << "31 samples make a step of 32: the first is read twice";
}

TEST(TutorialDefects, D28SyntheticBoxesHaveTheirOwnEdgesAndCounts) {
  config::RunConfig config = box_run();
  config.data.Nsamples_val = 5;
  EXPECT_EQ(open_boxes(config, Split::Train)->size(), 24);
  EXPECT_EQ(open_boxes(config, Split::Valid)->size(), 5);
  int64_t most = 0;
  for (const SamplePlan& plan : plans_of_epoch(config, Split::Valid, 0)) most = std::max(most, plan.origin[0]);
  EXPECT_EQ(most, 1) << "the validation box has an edge of 5";
}

TEST(TutorialDefects, D29ZeroReadingThreadsWork) {
  const auto dataset = open_boxes(box_run(), Split::Train);
  Pipeline pipeline(*dataset, Sampler(dataset->size(), Order::Shuffled, 0),
                    {.global_batch = 4, .micro_batch = 4, .num_workers = 0});
  EXPECT_EQ(pipeline.next().input.size(0), 4);
}

}  // namespace
}  // namespace welkin::data::tests
