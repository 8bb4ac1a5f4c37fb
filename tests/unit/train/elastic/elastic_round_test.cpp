// SPDX-License-Identifier: Apache-2.0
// Sizes of rounds, and a state that one process carries to itself.
#include "train/elastic/elastic_round.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace welkin::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

config::RunConfig batch_of(int64_t samples) {
  config::RunConfig config;
  config.loop.global_batch_size = samples;
  return config;
}

TEST(ElasticRound, SizesDivideTheBatch) {
  config::RunConfig config = batch_of(12);
  EXPECT_THAT(sizes_of_run(config, 1, 6), ElementsAre(6, 4, 3, 2, 1));
  EXPECT_THAT(sizes_of_run(config, 3, 5), ElementsAre(4, 3));
  config.parallel.tensor_parallel = 2;
  EXPECT_THAT(sizes_of_run(config, 1, 6), ElementsAre(6, 4, 2));
  config = batch_of(24);
  config.parallel.rank_invariant = true;
  EXPECT_THAT(sizes_of_run(config, 1, 8), ElementsAre(8, 4, 2, 1));
  config.parallel.rank_invariant = false;
  config.parallel.shard = config::ShardStage::Full;
  config.parallel.shard_group = "2";
  EXPECT_THAT(sizes_of_run(config, 1, 8), ElementsAre(8, 6, 4, 2));
}

TEST(ElasticRound, LimitsWithoutASmallerSizeAreRefused) {
  check_elastic_sizes(batch_of(7), 7, 7);
  check_elastic_sizes(batch_of(7), 1, 7);
  try {
    check_elastic_sizes(batch_of(7), 2, 7);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no smaller number of ranks in these limits can train the run: elastic=2:7, "
                                        "global_batch_size=7, ranks of a model=1, sizes that can=[1, 7]"));
  }
}

TEST(ElasticRound, TheLocalBatchFollowsTheRanks) { EXPECT_EQ(config_for(batch_of(12), 3).loop.local_batch_size, 4); }

TEST(CarriedState, ComesBackBitForBit) {
  const at::Tensor values = at::arange(12, at::kDouble).view({3, 4}).t();  // not contiguous
  const std::vector<CheckpointGroup> groups{{.name = "optimizer", .tensors = {{.name = "w", .value = values}}}};
  CheckpointIndex index;
  index.position = {.iteration = 17, .epoch = 2, .step_in_epoch = 3};
  index.best_loss = 0.5;
  const auto carried = carry_state(groups, index);
  ASSERT_TRUE(carried);
  const at::Tensor target = at::zeros_like(values);
  const std::vector<CheckpointGroup> other{{.name = "optimizer", .tensors = {{.name = "w", .value = target}}}};
  const auto shared = share_state(parallel::World(), carried.get(), other);
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->rank, 0);
  EXPECT_EQ(shared->index.position, index.position);
  EXPECT_EQ(shared->index.best_loss, 0.5);
  EXPECT_TRUE(at::equal(target, values));
  EXPECT_FALSE(share_state(parallel::World(), nullptr, other));
}

TEST(CarriedState, ValuesOutsideOfMemoryAreNotCarried) {
  const std::vector<CheckpointGroup> groups{
      {.name = "optimizer", .tensors = {{.name = "w", .value = at::arange(2), .fetch = [] { return at::arange(2); }}}}};
  EXPECT_FALSE(carry_state(groups, {}));
}

}  // namespace
}  // namespace welkin::train
