// SPDX-License-Identifier: Apache-2.0
// Optimizers that need norms of whole parameters, where tensor parallelism gives each of two ranks a part: the same weights as
// one process has.
#include <gtest/gtest.h>

#include "rank_processes.h"
#include "tiny_ranks.h"
#include "tolerance.h"
#include "train/checkpoint/whole_tensors.h"
#include "train/step/model_setup.h"

namespace welkin::train {
namespace {

std::vector<CheckpointTensor> weights_after(TinySteps& steps) {
  for (int step = 0; step < 4; ++step) steps.next();
  TrainSetup& setup = steps.setup();
  return gather_whole(model_group(setup.table, *setup.model), {setup.table, setup.layout.groups, setup.layout.sharding.shards})
      .tensors;
}

const parallel::RankTest kParts("optimizers_on_parts", [](parallel::Connection& connection) {
  for (const char* name : {"LAMB", "LARS", "Adafactor"}) {
    const ScratchFolder root;
    config::RunConfig config = tiny_config(root.path());
    config.optimizer.optimizer = name;
    config.optimizer.eps = 1e-6;
    config.optimizer.weight_decay = 0.1;
    config.optimizer.clip_norm = 0.5;
    config.optimizer.adafactor_factored = false;
    config.optimizer.freeze = {"*.attn.k.bias"};  // which attention does not see: its gradient is rounding alone
    config.loop.micro_batch_size = 4;
    TinySteps alone(config, nullptr);
    config.parallel.tensor_parallel = 2;
    TinySteps split(config, nullptr, ranks_of(connection));
    const auto wanted = weights_after(alone), got = weights_after(split);
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_TRUE(tests::close(got[i].value, wanted[i].value, at::kFloat, 64)) << name << " " << got[i].name;
  }
});

TEST(OptimizersOnParts, EqualOneProcess) { parallel::run_on_ranks("optimizers_on_parts", 2); }

}  // namespace
}  // namespace welkin::train
