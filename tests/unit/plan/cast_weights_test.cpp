// SPDX-License-Identifier: Apache-2.0
// Memory of the copies of weights in 16 bits that mixed precision makes.
#include <gtest/gtest.h>

#include "plan/run_estimate.h"
#include "small_run.h"

namespace welkin::plan {
namespace {

TEST(CastWeights, WeightsOfPartsThatRunAgainAreCastOnePartAtATime) {
  config::RunConfig config = small_config();
  config.precision.amp_mode = config::AmpMode::Bf16;
  config.parallel.tensor_parallel = 2;
  RunFacts facts = small_facts();
  facts.world_size = 2;
  facts.memory->checkpointed_weights = 480;
  facts.memory->recomputed_weights = 120;
  EXPECT_EQ(part(estimate_run(config, facts), "weights in 16 bits"), 2 * (600 - (480 - 120) / 2));
}

// So it is on a CPU without matmuls of 16 bits; a GPU has copies of all.
TEST(CastWeights, WeightsThatAreRoundedOnTheWayHaveNoCopies) {
  config::RunConfig config = small_config();
  config.precision.amp_mode = config::AmpMode::Bf16;
  RunFacts facts = small_facts();
  facts.world_size = 2;
  const auto narrow = [&](bool widens_matmuls, config::DeviceChoice device) {
    facts.widens_matmuls = widens_matmuls;
    config.loop.device = device;
    return part(estimate_run(config, facts), "weights in 16 bits");
  };
  using config::DeviceChoice;
  EXPECT_EQ(narrow(false, DeviceChoice::Cpu), 2 * 1000);
  EXPECT_EQ(narrow(true, DeviceChoice::Cpu), 0);
  EXPECT_EQ(narrow(true, DeviceChoice::Cuda), 2 * 1000);
  facts.memory->has_cast_weights = false;  // convolutions
  EXPECT_EQ(narrow(false, DeviceChoice::Cpu), 0);
  EXPECT_EQ(narrow(true, DeviceChoice::Cpu), 0);
  EXPECT_EQ(narrow(false, DeviceChoice::Cuda), 2 * 1000);
}

// The largest moment is in the backward pass, when the last layer's copies, a tenth, are freed.
TEST(CastWeights, CopiesOfWeightsGoWithTheBackwardPassOfSharedState) {
  config::RunConfig config = small_config();
  config.precision.amp_mode = config::AmpMode::Bf16;
  config.loop.device = config::DeviceChoice::Cpu;
  config.loop.micro_batch_size = 1;
  config.parallel.shard = config::ShardStage::Optimizer;
  RunFacts facts = small_facts();
  facts.world_size = 4;
  facts.cost.layers = {{.name = "blocks.0.fc1", .parameters = 900}, {.name = "blocks.0.fc2", .parameters = 100}};
  facts.widens_matmuls = true;
  const double without = part(estimate_run(config, facts), "activations");
  facts.widens_matmuls = false;
  const RunEstimate run = estimate_run(config, facts);
  EXPECT_EQ(part(run, "activations"), without + 2 * 1000 * 0.9);
  EXPECT_EQ(part(run, "weights in 16 bits"), 0);
  config.loop.device = config::DeviceChoice::Cuda;
  EXPECT_EQ(part(estimate_run(config, facts), "weights in 16 bits"), 2 * 1000);
}

TEST(CastWeights, AGpuCopiesWhatItJoins) {
  RunFacts facts = small_facts();
  const double before = part(estimate_run(small_config(), facts), "activations");
  facts.memory->kept.joined = 25;
  EXPECT_EQ(part(estimate_run(small_config(), facts), "activations"), before + 4 * 4 * 25);
  config::RunConfig config = small_config();
  config.loop.device = config::DeviceChoice::Cpu;
  EXPECT_EQ(part(estimate_run(config, facts), "activations"), before);
}

}  // namespace
}  // namespace welkin::plan
