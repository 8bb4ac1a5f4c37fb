// SPDX-License-Identifier: Apache-2.0
// Training steps whose state is shared out: the same as with whole states, and the bytes that each rank holds and sends.
#include <ATen/ops/abs.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "number_close.h"
#include "parallel/comm/collectives.h"
#include "parallel/comm/flight_recorder.h"
#include "parallel/sharding/sharded_parallel.h"
#include "parallel/sharding/weight_units.h"
#include "rank_processes.h"
#include "sharded_state.h"
#include "tiny_ranks.h"
#include "train/step/model_setup.h"

namespace welkin::train {
namespace {

using config::ShardStage;

constexpr int64_t kShardedSteps = 5;  // the third is short, so that ranks make different numbers of passes
constexpr std::array kStages{ShardStage::Optimizer, ShardStage::Gradients, ShardStage::Full};

// Of two ranks a sum has one order: the same bits, but for the norm, by which nothing is clipped here.
void expect_same_steps(parallel::Connection& connection, config::RunConfig config) {
  const TinyRanks ranks = ranks_of(connection);
  config.optimizer.clip_norm = 0;
  TinySteps plain(config, nullptr, ranks);
  std::vector<StepRecord> wanted;
  for (int64_t step = 0; step < kShardedSteps; ++step) wanted.push_back(plain.next());
  const auto state = whole_state(plain);
  for (const ShardStage stage : kStages) {
    config.parallel.shard = stage;
    TinySteps sharded(config, nullptr, ranks);
    for (const StepRecord& want : wanted) {
      const StepRecord got = sharded.next();
      EXPECT_TRUE(at::equal(got.loss, want.loss)) << got.loss.item<float>() << " " << want.loss.item<float>();
      EXPECT_FLOAT_EQ(got.gradient.norm.item<float>(), want.gradient.norm.item<float>());
    }
    expect_equal_states(whole_state(sharded), state);
  }
}

const parallel::RankTest kSame("sharded_steps", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = tiny_config(root.path());
  config.loop.micro_batch_size = 4;
  expect_same_steps(connection, config);
  config.loop.activation_checkpointing = config::CheckpointedPart::Blocks;
  config.precision.amp_mode = config::AmpMode::Bf16;
  expect_same_steps(connection, config);
  config.parallel.reshard_after_forward = false;
  config.parallel.shard_prefetch = 0;
  config.optimizer.freeze = {"blocks.0.mlp.*", "pos_embed"};
  expect_same_steps(connection, config);
});

// Parameters of a MiB and more, which are sent from their own memory.
const parallel::RankTest kLarge("sharded_steps_of_large_parameters", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = tiny_config(root.path());
  config.model.embed_dim = 256;
  config.model.depth = 1;
  config.loop.micro_batch_size = 4;
  expect_same_steps(connection, config);
  config.precision.amp_mode = config::AmpMode::Bf16;
  config.parallel.shard_gather_dtype = config::GatherDtype::Bf16;
  expect_same_steps(connection, config);
});

// Of nine samples the third step has one, and so one of two ranks none: it walks through zeros.
const parallel::RankTest kSeveralSteps("sharded_steps_of_the_model", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = tiny_config(root.path());
  config.loop.micro_batch_size = 4;
  config.loss.multistep = 3;
  config.loss.input_noise = 0.1;
  expect_same_steps(connection, config);
  config.loss.multistep_recompute = true;
  config.loop.activation_checkpointing = config::CheckpointedPart::Blocks;
  expect_same_steps(connection, config);
  config.loss.multistep_recompute = false;
  config.loss.multistep_gradient = config::MultistepGradient::Last;
  config.parallel.reshard_after_forward = false;
  expect_same_steps(connection, config);
});

// Weights that autocast rounds anyway are gathered rounded: the same bits with half of the bytes; their masters stay float32.
const parallel::RankTest kGatheredLow("sharded_gather_bf16", [](parallel::Connection& connection) {
  const ScratchFolder root;
  const TinyRanks ranks = ranks_of(connection);
  config::RunConfig config = tiny_config(root.path());
  config.loop.micro_batch_size = 4;
  config.precision.amp_mode = config::AmpMode::Bf16;
  for (const ShardStage stage : kStages) {
    config.parallel.shard = stage;
    config.parallel.shard_gather_dtype = config::GatherDtype::Fp32;
    TinySteps wide(config, nullptr, ranks);
    config.parallel.shard_gather_dtype = config::GatherDtype::Bf16;
    TinySteps low(config, nullptr, ranks);
    for (int64_t step = 0; step < kShardedSteps; ++step) {
      const StepRecord want = wide.next(), got = low.next();
      EXPECT_TRUE(at::equal(got.loss, want.loss)) << got.loss.item<float>() << " " << want.loss.item<float>();
      EXPECT_TRUE(at::equal(got.gradient.norm, want.gradient.norm));
    }
    expect_equal_states(whole_state(low), whole_state(wide));
  }
});

// Gradients of micro-batches are summed over ranks one after the other, or over all at once: other roundings.
const parallel::RankTest kAccumulated("sharded_accumulation", [](parallel::Connection& connection) {
  const ScratchFolder root;
  const TinyRanks ranks = ranks_of(connection);
  config::RunConfig config = tiny_config(root.path());
  config.loop.micro_batch_size = 1;
  config.optimizer.clip_norm = 0.5;
  config.precision.amp_mode = config::AmpMode::Fp16;  // with loss scaling
  config.optimizer.optimizer = "SGD";                 // Adam divides by its own noise where a gradient is all but zero
  TinySteps plain(config, nullptr, ranks);
  std::vector<StepRecord> wanted;
  for (int64_t step = 0; step < kShardedSteps; ++step) wanted.push_back(plain.next());
  for (const ShardStage stage : kStages) {
    config.parallel.shard = stage;
    TinySteps sharded(config, nullptr, ranks);
    for (const StepRecord& want : wanted) {
      const StepRecord got = sharded.next();
      EXPECT_EQ(got.samples, want.samples);
      EXPECT_TRUE(at::equal(got.gradient.found_inf, want.gradient.found_inf));
      EXPECT_TRUE(tests::close(got.loss.item<float>(), want.loss.item<float>(), kFp16, 16));
      EXPECT_TRUE(tests::close(got.gradient.norm.item<float>(), want.gradient.norm.item<float>(), kFp16, 16));
    }
  }
});

// Norms of parameters of which ranks have pieces, and the moving average of these.
const parallel::RankTest kNorms("sharded_norms", [](parallel::Connection& connection) {
  const ScratchFolder root;
  const TinyRanks ranks = ranks_of(connection);
  config::RunConfig config = tiny_config(root.path());
  config.loop.micro_batch_size = 4;
  config.optimizer.ema_decay = 0.5;
  for (const char* optimizer : {"LAMB", "LARS", "Lion"}) {
    config.optimizer.optimizer = optimizer;
    config.parallel.shard = ShardStage::None;
    TinySteps plain(config, nullptr, ranks);
    for (int64_t step = 0; step < 3; ++step) plain.next();
    const auto wanted = whole_state(plain);
    for (const ShardStage stage : kStages) {
      config.parallel.shard = stage;
      TinySteps sharded(config, nullptr, ranks);
      for (int64_t step = 0; step < 3; ++step) sharded.next();
      const auto got = whole_state(sharded);
      ASSERT_EQ(got.size(), wanted.size());
      for (const auto& [name, value] : wanted) {
        const double scale = std::max(1.0, value.abs().max().item<double>());
        const double difference = (got.at(name) - value).abs().max().item<double>();
        EXPECT_TRUE(tests::rounds_to(difference, 0, scale, kFp32, 64)) << optimizer << " " << name;
      }
    }
  }
});

// A NaN on one rank's sample: all skip the step, with the same verdict.
const parallel::RankTest kSkipped("sharded_nonfinite", [](parallel::Connection& connection) {
  const ScratchFolder root;
  const TinyRanks ranks = ranks_of(connection);
  for (const ShardStage stage : kStages) {
    config::RunConfig config = tiny_config(root.path());
    config.loop.micro_batch_size = 2;
    config.parallel.shard = stage;
    TinySteps steps(config, nullptr, ranks);
    steps.next();
    const auto before = whole_state(steps);
    for (const parallel::ParamRow& row : steps.setup().table.rows()) {
      const bool is_first = connection.rank() == 0 && row.shard.numel() > 0 && row.name == "head.weight";
      if (is_first) row.shard.view({-1})[0] = std::numeric_limits<float>::quiet_NaN();
    }
    steps.setup().data_parallel->after_update();
    EXPECT_EQ(steps.next().gradient.found_inf.item<float>(), 1);
    const auto after = whole_state(steps);
    for (const auto& [name, value] : before) {
      if (name == "head.weight") continue;
      EXPECT_TRUE(at::equal(after.at(name), value)) << name;
    }
  }
});

struct Bytes {
  double weights = 0, gradients = 0, states = 0;
};

double storage_bytes(const at::Tensor& tensor) { return tensor.defined() ? static_cast<double>(tensor.storage().nbytes()) : 0; }

// After a backward pass, before the update.
Bytes bytes_held(TinySteps& steps) {
  TrainSetup& setup = steps.setup();
  const at::Tensor loss =
      setup.forward(at::zeros({1, 2, 8, 8}), {.seed = 1, .step = setup.counter, .sample = at::zeros({1}, at::kLong)}).sum();
  setup.data_parallel->backward(loss, /*is_last=*/true);
  Bytes bytes;
  std::map<const void*, double> gradients;  // pieces of a bucket share its memory
  for (const parallel::ParamRow& row : setup.table.rows()) {
    bytes.weights += static_cast<double>(row.held_bytes());
    for (const at::Tensor& gradient : {row.local.grad(), row.gradient()}) {
      if (gradient.defined()) gradients[gradient.storage().unsafeGetStorageImpl()] = storage_bytes(gradient);
    }
  }
  for (const auto& [storage, held] : gradients) bytes.gradients += held;
  for (const NamedState& state : setup.optimizer->states()) bytes.states += storage_bytes(state.value);
  setup.data_parallel->clear_gradients();
  return bytes;
}

// Elements of a rank's message: of each row its longest piece, in bytes of the type in which it is gathered.
double gathered_bytes_of(const std::vector<parallel::ParamRow*>& rows, double shards) {
  double bytes = 0;
  for (const parallel::ParamRow* row : rows) {
    bytes += shards * static_cast<double>(row->split.longest()) * (row->decay == parallel::DecayGroup::Decay ? 2 : 4);
  }
  return bytes;
}

std::map<std::string, double> calls(parallel::Connection& connection) {
  std::map<std::string, double> bytes;
  for (const parallel::CallTotal& total : connection.recorder().totals()) bytes[total.name] += static_cast<double>(total.bytes);
  return bytes;
}

const parallel::RankTest kBytes("sharded_bytes", [](parallel::Connection& connection) {
  const ScratchFolder root;
  const TinyRanks ranks = ranks_of(connection);
  config::RunConfig config = tiny_config(root.path());
  config.model.embed_dim = 64;
  config.loop.micro_batch_size = 4;
  const auto shards = static_cast<double>(connection.world_size());
  const auto near = [](double got, double wanted, const char* what) {
    constexpr tests::Stated kPadding{0.03, "pieces of rows, padded to the longest"};
    EXPECT_TRUE(tests::within(got / wanted, 1, kPadding)) << what;
  };
  for (const ShardStage stage : kStages) {
    config.parallel.shard = stage;
    TinySteps steps(config, nullptr, ranks);
    const auto weights = static_cast<double>(4 * steps.setup().table.num_parameters());
    const Bytes held = bytes_held(steps);
    near(held.weights, stage == ShardStage::Full ? weights / shards : weights, "weights");
    near(held.gradients, weights / shards, "gradients, once they are reduced");
    near(held.states, 2 * weights / shards, "states");

    double always = 0;  // what is gathered once, for the whole of both passes
    const model::ModelPtr model = build_model(steps.registries(), config, steps.spec(), at::kCPU);
    parallel::ParamTable table = parallel::ParamTable::of(*model);
    const std::vector<parallel::WeightUnit> units = parallel::weight_units(*model, table);
    for (const parallel::ParamRow* row : units.front().rows) always += storage_bytes(row->local);
    EXPECT_LT(always, weights / 10);
    const auto before = calls(connection);
    steps.next();
    steps.setup().data_parallel->complete_weights();  // a call counts when it has ended
    auto sent = calls(connection);
    for (const auto& [name, bytes] : before) sent[name] -= bytes;
    near(sent["reduce_scatter"], weights, "gradients that travel");
    near(sent["all_gather"], stage == ShardStage::Full ? 2 * weights - always : weights, "weights that travel");
  }
});

const parallel::RankTest kLowBytes("sharded_gather_bytes", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = tiny_config(root.path());
  config.loop.micro_batch_size = 4;
  config.parallel.shard = ShardStage::Optimizer;
  config.parallel.shard_gather_dtype = config::GatherDtype::Bf16;
  TinySteps steps(config, nullptr, ranks_of(connection));
  std::vector<parallel::ParamRow*> rows;
  for (parallel::ParamRow& row : steps.setup().table.rows()) rows.push_back(&row);
  const auto before = calls(connection);
  steps.next();
  steps.setup().data_parallel->complete_weights();
  auto sent = calls(connection);
  for (const auto& [name, bytes] : before) sent[name] -= bytes;
  const double wanted = gathered_bytes_of(rows, static_cast<double>(connection.world_size()));
  EXPECT_GE(sent["all_gather"], wanted);
  // A message ends at a multiple of four bytes for each rank.
  EXPECT_LE(sent["all_gather"],
            wanted + 2.0 * static_cast<double>(connection.world_size() *
                                               static_cast<int64_t>(steps.setup().data_parallel->buckets().size())));
});

TEST(ShardedSteps, HaveTheBitsOfWholeStatesOnTwoRanks) { parallel::run_on_ranks("sharded_steps", 2); }
TEST(ShardedSteps, HaveTheBitsOfWholeStatesForLargeParameters) { parallel::run_on_ranks("sharded_steps_of_large_parameters", 2); }
TEST(ShardedSteps, EqualStepsOfReplicasWhereTheModelMakesSeveral) { parallel::run_on_ranks("sharded_steps_of_the_model", 2); }
TEST(ShardedSteps, GatherRoundedWeightsOnTwoRanks) { parallel::run_on_ranks("sharded_gather_bf16", 2); }
TEST(ShardedSteps, GatherRoundedWeightsOnFourRanks) { parallel::run_on_ranks("sharded_gather_bf16", 4); }
TEST(ShardedSteps, AccumulateClipAndScale) { parallel::run_on_ranks("sharded_accumulation", 2); }
TEST(ShardedSteps, GoOnWhereARankHasNoSamples) { parallel::run_on_ranks("sharded_accumulation", 4); }
TEST(ShardedSteps, HaveTheNormsOfWholeParameters) { parallel::run_on_ranks("sharded_norms", 2); }
TEST(ShardedSteps, AreSkippedByAll) { parallel::run_on_ranks("sharded_nonfinite", 2); }
TEST(ShardedSteps, HoldAndSendTheBytesOfTheFormulas) { parallel::run_on_ranks("sharded_bytes", 4); }
TEST(ShardedSteps, SendRoundedWeightsAsHalfOfTheBytes) { parallel::run_on_ranks("sharded_gather_bytes", 2); }

}  // namespace
}  // namespace welkin::train
