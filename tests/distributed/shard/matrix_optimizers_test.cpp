// SPDX-License-Identifier: Apache-2.0
// Optimizers that need more of a parameter than a rank has: Muon whole matrices, Adafactor averages of whole rows and columns,
// 8-bit states whole blocks. The same as with whole parameters, and their states move between layouts.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/text.h"
#include "number_close.h"
#include "parallel/comm/collectives.h"
#include "parallel/sharding/whole_parameters.h"
#include "rank_processes.h"
#include "sharded_state.h"
#include "tiny_ranks.h"
#include "train/checkpoint/shared_checkpoint.h"
#include "train/step/model_setup.h"

namespace welkin::train {
namespace {

using config::ShardStage;

config::RunConfig matrix_config(const ScratchFolder& root, const std::string& optimizer) {
  config::RunConfig config = tiny_config(root.path());
  config.loop.micro_batch_size = 4;
  config.optimizer.clip_norm = 0;
  config.optimizer.weight_decay = 0.1;
  config.optimizer.optimizer = optimizer;
  if (optimizer == "Adafactor") config.optimizer.eps = 1e-6;
  return config;
}

config::RunConfig coded_config(const ScratchFolder& root) {
  config::RunConfig config = matrix_config(root, "AdamW");
  config.model.embed_dim = 48;  // weights of more than 4096 elements, whose blocks and rows have other lengths
  config.optimizer.optimizer_state = config::OptimizerState::Bits8;
  return config;
}

struct MatrixSplit {
  int64_t tensor_parallel;
  ShardStage shard;
};

// Each whole is what all ranks have of it, and what is made of it comes back to each.
const parallel::RankTest kMatrixWholes("whole_parameters", [](parallel::Connection& connection) {
  const ScratchFolder root;
  for (const MatrixSplit& split :
       {MatrixSplit{1, ShardStage::None}, MatrixSplit{1, ShardStage::Gradients}, MatrixSplit{1, ShardStage::Full},
        MatrixSplit{2, ShardStage::None}, MatrixSplit{2, ShardStage::Full}}) {
    config::RunConfig config = matrix_config(root, "AdamW");
    config.loop.micro_batch_size = 1;
    config.parallel.tensor_parallel = split.tensor_parallel;
    config.parallel.shard = split.shard;
    TinySteps steps(config, nullptr, ranks_of(connection));
    const auto wanted = whole_state(steps);
    const parallel::ParamTable& table = steps.setup().table;
    std::vector<size_t> rows;
    for (size_t row = 0; row < table.rows().size(); ++row) rows.push_back(row);
    const TensorLayout layout = layout_of(steps);
    const auto visit = [&](const std::vector<size_t>& chosen) {
      const auto row = [&](size_t i) -> const parallel::ParamRow& { return table.rows()[chosen[i]]; };
      int64_t bodies = 0;
      std::vector<at::Tensor> taken(chosen.size());
      parallel::each_whole(table, chosen, layout.groups, layout.shards,
                           {.part = [&](size_t i) { return row(i).trained().detach(); },
                            .body =
                                [&](size_t i, const at::Tensor& whole) {
                                  ++bodies;
                                  EXPECT_TRUE(at::equal(whole, wanted.at(row(i).name))) << row(i).name;
                                  return whole * 2 + 1;
                                },
                            .take = [&](size_t i, const at::Tensor& part) { taken[i] = part; }});
      for (size_t i = 0; i < chosen.size(); ++i) {
        EXPECT_TRUE(at::equal(taken[i], row(i).trained().detach() * 2 + 1)) << row(i).name;
      }
      return bodies;
    };
    std::vector<size_t> few;  // fewer than the ranks that share them out
    for (const size_t row : rows) {
      if (few.size() < 3 && table.rows()[row].placements[parallel::Axis::Tp].sharded()) few.push_back(row);
      if (!few.empty()) visit(few);
    }
    const int64_t bodies = visit(rows);
    if (split.shard == ShardStage::None) continue;  // ranks with whole parameters work on all of them
    const at::Tensor all = parallel::all_reduce(ranks_of(connection).world_group, at::full({1}, bodies, at::kLong));
    int64_t replicated = 0;  // over tp: each of its ranks works on them
    for (const parallel::ParamRow& row : table.rows()) replicated += row.placements[parallel::Axis::Tp].sharded() ? 0 : 1;
    const auto num = static_cast<int64_t>(rows.size());
    EXPECT_EQ(all.item<int64_t>(), num + replicated * (split.tensor_parallel - 1));
  }
});

std::map<std::string, at::Tensor> matrix_state_after(const config::RunConfig& config, const TinyRanks& ranks) {
  TinySteps steps(config, nullptr, ranks);
  for (int64_t step = 0; step < 4; ++step) steps.next();
  return whole_state(steps);
}

void expect_close_matrix_states(const std::map<std::string, at::Tensor>& got, const std::map<std::string, at::Tensor>& wanted,
                                int64_t roundings, const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size());
  for (const auto& [name, value] : wanted) {
    ASSERT_EQ(got.at(name).sizes(), value.sizes()) << name;
    const double scale = std::max(1.0, value.abs().max().item<double>());
    const double difference = (got.at(name).to(at::kDouble) - value.to(at::kDouble)).abs().max().item<double>();
    EXPECT_TRUE(tests::rounds_to(difference, 0, scale, kFp32, roundings)) << what << " " << name;
  }
}

const parallel::RankTest kMatrixShared("matrix_optimizers_shared", [](parallel::Connection& connection) {
  const ScratchFolder root;
  const TinyRanks ranks = ranks_of(connection);
  std::vector<config::RunConfig> configs{matrix_config(root, "Muon"), matrix_config(root, "Adafactor"), coded_config(root)};
  for (config::RunConfig& config : configs) {
    const std::string& name = config.optimizer.optimizer;
    const auto wanted = matrix_state_after(config, ranks);
    for (const ShardStage stage : {ShardStage::Optimizer, ShardStage::Gradients, ShardStage::Full}) {
      config.parallel.shard = stage;
      const auto got = matrix_state_after(config, ranks);
      if (name == "Adafactor") {
        expect_close_matrix_states(got, wanted, 64, name);  // sums of parts have another order
      } else {
        expect_equal_states(got, wanted);
      }
    }
  }
});

const parallel::RankTest kMatrixSplit("matrix_optimizers_split", [](parallel::Connection& connection) {
  const ScratchFolder root;
  for (const char* name : {"Muon", "Adafactor"}) {
    config::RunConfig config = matrix_config(root, name);
    config.optimizer.freeze = {"*.attn.k.bias"};  // which attention does not see: its gradient is rounding alone
    const auto wanted = matrix_state_after(config, TinyRanks());
    config.loop.micro_batch_size = 2;
    config.parallel.tensor_parallel = 2;
    for (const ShardStage stage : {ShardStage::None, ShardStage::Full}) {
      config.parallel.shard = stage;
      expect_close_matrix_states(matrix_state_after(config, ranks_of(connection)), wanted, 256, name);
    }
  }
});

// Where an element of what a rank trains stands in the memory of the whole: there the whole has its value.
const parallel::RankTest kPlacesOfParts("places_of_parts", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = matrix_config(root, "AdamW");
  TinySteps alone(config, nullptr);
  config.loop.micro_batch_size = 1;
  for (const MatrixSplit& split :
       {MatrixSplit{1, ShardStage::Full}, MatrixSplit{2, ShardStage::None}, MatrixSplit{2, ShardStage::Full}}) {
    config.parallel.shard = split.shard;
    config.parallel.tensor_parallel = split.tensor_parallel;
    TinySteps steps(config, nullptr, ranks_of(connection));
    const auto whole = optimizer_parameters(alone.setup().table, alone.setup().layout),
               own = optimizer_parameters(steps.setup().table, steps.setup().layout);
    for (size_t i = 0; i < own.size(); ++i) {
      const at::Tensor all = parallel::memory_of(whole[i].value), part = parallel::memory_of(own[i].value);
      for (int64_t element = 0; element < part.numel(); ++element) {
        const int64_t place = own[i].runs.place_of(element);
        ASSERT_TRUE(at::equal(part[element], all[place])) << own[i].name << " " << element << " " << place;
      }
    }
  }
});

// Blocks of codes are those of what tensor parallelism leaves to a rank: a run goes on with as many ranks of it and any others,
// bit by bit, and what another number of them reads does not fit.
const parallel::RankTest kCodedSplit("coded_states_split", [](parallel::Connection& connection) {
  const ScratchFolder root;
  const TinyRanks ranks = ranks_of(connection);
  config::RunConfig config = coded_config(root);
  config.loop.micro_batch_size = 1;
  config.parallel.tensor_parallel = 2;
  config.parallel.shard = ShardStage::Full;
  TinySteps saved(config, nullptr, ranks);
  for (int64_t step = 0; step < 4; ++step) saved.next();
  const auto state = whole_state(saved);
  const std::filesystem::path folder = std::filesystem::path(parallel::rank_scratch_folder()) / "coded" / "step_4";
  write_shared_checkpoint(ranks.world_group, folder, own_tensors(groups_of(saved), layout_of(saved)),
                          [] { return std::optional(CheckpointIndex{}); });
  parallel::barrier(ranks.world_group);
  for (const ShardStage stage : {ShardStage::None, ShardStage::Optimizer, ShardStage::Full}) {
    config.parallel.shard = stage;
    TinySteps loaded(config, nullptr, ranks);
    for (const CheckpointGroup& group : groups_of(loaded)) read_parts(Checkpoint(folder), group, layout_of(loaded));
    expect_equal_states(whole_state(loaded), state);
  }
  config.parallel.tensor_parallel = 1;
  TinySteps other(config, nullptr, ranks);
  EXPECT_THROW(read_parts(Checkpoint(folder), optimizer_group(other), layout_of(other)), CheckpointError);
  int64_t fitting = 0, coded = 0;
  for (const CheckpointTensor& tensor : optimizer_group(other).tensors) coded += tensor.run > 0 ? 1 : 0;
  for (const CheckpointTensor& tensor : fitting_tensors(Checkpoint(folder), optimizer_group(other), layout_of(other)).tensors) {
    fitting += tensor.run > 0 ? 1 : 0;
  }
  EXPECT_GT(coded, 0);
  EXPECT_EQ(fitting, 0) << "codes without their scales would be others";
});

// Saved by pieces, read by other layouts, bit by bit.
const parallel::RankTest kMatrixMoved("matrix_optimizers_moved", [](parallel::Connection& connection) {
  const ScratchFolder root;
  const TinyRanks ranks = ranks_of(connection);
  std::vector<config::RunConfig> configs{matrix_config(root, "Muon"), matrix_config(root, "Adafactor"), coded_config(root)};
  for (size_t i = 0; i < configs.size(); ++i) {
    config::RunConfig config = configs[i];
    const bool is_coded = config.optimizer.optimizer_state == config::OptimizerState::Bits8;
    config.loop.micro_batch_size = 1;
    config.parallel.shard = ShardStage::Full;
    config.parallel.tensor_parallel = is_coded ? 1 : 2;
    TinySteps saved(config, nullptr, ranks);
    for (int64_t step = 0; step < 2; ++step) saved.next();
    const auto state = whole_state(saved);
    const std::filesystem::path folder = std::filesystem::path(parallel::rank_scratch_folder()) / cat("moved_", i) / "step_2";
    write_shared_checkpoint(ranks.world_group, folder, own_tensors(groups_of(saved), layout_of(saved)),
                            [] { return std::optional(CheckpointIndex{}); });
    parallel::barrier(ranks.world_group);
    for (const MatrixSplit& other :
         {MatrixSplit{1, ShardStage::None}, MatrixSplit{1, ShardStage::Optimizer}, MatrixSplit{2, ShardStage::Full}}) {
      config.parallel.shard = other.shard;
      config.parallel.tensor_parallel = is_coded ? 1 : other.tensor_parallel;
      TinySteps loaded(config, nullptr, ranks);
      for (const CheckpointGroup& group : groups_of(loaded)) read_parts(Checkpoint(folder), group, layout_of(loaded));
      expect_equal_states(whole_state(loaded), state);
    }
  }
});

TEST(WholeParameters, AreMadeOnOneRankEach) { parallel::run_on_ranks("whole_parameters", 4); }
TEST(MatrixOptimizers, EqualThoseOfWholeParameters) { parallel::run_on_ranks("matrix_optimizers_shared", 2); }
TEST(MatrixOptimizers, FollowOneProcessUnderTensorParallelism) { parallel::run_on_ranks("matrix_optimizers_split", 4); }
TEST(CodedStates, AreThoseOfARanksPart) { parallel::run_on_ranks("coded_states_split", 4); }
TEST(OptimizerParameters, SayWhereTheyStandInTheWhole) { parallel::run_on_ranks("places_of_parts", 4); }
TEST(MatrixOptimizers, MoveBetweenLayouts) { parallel::run_on_ranks("matrix_optimizers_moved", 4); }

}  // namespace
}  // namespace welkin::train
