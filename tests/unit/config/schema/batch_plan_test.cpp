// SPDX-License-Identifier: Apache-2.0
#include "config/schema/batch_plan.h"

#include <gtest/gtest.h>

namespace welkin::config {
namespace {

RunConfig of_batch(int64_t global, int64_t micro) {
  RunConfig config;
  config.loop.global_batch_size = global;
  config.loop.micro_batch_size = micro;
  return config;
}

TEST(BatchPlan, AForwardPassHasTheWholeLocalBatchUnlessItIsToldOtherwise) {
  EXPECT_EQ(batch_plan(of_batch(64, 0), 4).local, 16);
  EXPECT_EQ(batch_plan(of_batch(64, 0), 4).micro, 16);
  EXPECT_EQ(batch_plan(of_batch(64, 6), 4).micro, 6);
  EXPECT_EQ(batch_plan(of_batch(64, 100), 4).micro, 16) << "no more than there are";
  EXPECT_EQ(batch_plan(of_batch(10, 0), 4).local, 3) << "the largest of 3, 3, 2 and 2";
  EXPECT_EQ(batch_plan(of_batch(64, 0), 4).units, 0);
}

TEST(BatchPlan, KnowsTheRanksThatTheConfigurationWasResolvedFor) {
  RunConfig config = of_batch(64, 0);
  EXPECT_EQ(batch_plan(config).local, 64);
  config.loop.local_batch_size = 8;
  EXPECT_EQ(batch_plan(config).micro, 8);
}

TEST(BatchPlan, AForwardPassOfARankInvariantRunIsAnEighthOfTheGlobalBatch) {
  RunConfig config = of_batch(64, 5);
  config.parallel.rank_invariant = true;
  for (const int64_t replicas : {1, 2, 4, 8}) {
    EXPECT_EQ(batch_plan(config, replicas).micro, 8) << "whatever micro_batch_size says, on " << replicas << " ranks";
  }
  EXPECT_EQ(batch_plan(config, 1).units, 8);
}

}  // namespace
}  // namespace welkin::config
