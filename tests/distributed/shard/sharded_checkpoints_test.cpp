// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a training state that is shared out: written by each rank, published whole or not at all, read by any layout.
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "parallel/comm/collectives.h"
#include "rank_processes.h"
#include "sharded_state.h"
#include "tiny_ranks.h"
#include "train/checkpoint/shared_checkpoint.h"

namespace welkin::train {
namespace {

using config::ShardStage;

const parallel::RankTest kMoved("sharded_checkpoint", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = tiny_config(root.path());
  config.loop.micro_batch_size = 2;
  config.parallel.shard = ShardStage::Full;
  config.parallel.tensor_parallel = 2;
  TinySteps saved(config, nullptr, ranks_of(connection));
  for (int64_t step = 0; step < 2; ++step) saved.next();
  const auto state = whole_state(saved);
  const std::filesystem::path folder = std::filesystem::path(parallel::rank_scratch_folder()) / "step_2";
  WholeGroups whole(groups_of(saved), layout_of(saved));
  if (connection.rank() == 0) write_checkpoint(folder, CheckpointIndex{}, whole.groups());
  whole.join_others();
  parallel::barrier(ranks_of(connection).world_group);
  struct Other {
    int64_t ranks, tensor_parallel;
    ShardStage shard;
  };
  for (const Other& other : {Other{1, 1, ShardStage::None}, Other{2, 1, ShardStage::Optimizer}, Other{4, 1, ShardStage::Full},
                             Other{4, 2, ShardStage::None}}) {
    config.parallel.shard = other.shard;
    config.parallel.tensor_parallel = other.tensor_parallel;
    TinySteps loaded(config, nullptr, neighbours(connection, other.ranks));
    for (const CheckpointGroup& group : groups_of(loaded)) read_parts(Checkpoint(folder), group, layout_of(loaded));
    expect_equal_states(whole_state(loaded), state);
  }
});

// Whatever the layout that saved, a rank reads as many bytes of tensors as it has.
void expect_own_bytes(const std::filesystem::path& folder, TinySteps& loaded) {
  const Checkpoint checkpoint(folder, OpeningCheck::Sizes);
  uint64_t own = 0;
  for (const CheckpointGroup& group : groups_of(loaded)) {
    read_parts(checkpoint, group, layout_of(loaded));
    for (const CheckpointTensor& tensor : group.tensors) own += tensor.value.nbytes();
  }
  EXPECT_EQ(checkpoint.bytes_read(), own);
}

// Each rank writes what it has; the folder appears with all of it, and any layout takes it.
void expect_pieces_move(parallel::Connection& connection, const config::RunConfig& saving, const std::filesystem::path& folder) {
  config::RunConfig config = saving;
  TinySteps saved(config, nullptr, ranks_of(connection));
  for (int64_t step = 0; step < 2; ++step) saved.next();
  const auto state = whole_state(saved);
  const parallel::Group world = ranks_of(connection).world_group;
  write_shared_checkpoint(world, folder, own_tensors(groups_of(saved), layout_of(saved)),
                          [] { return std::optional(CheckpointIndex{}); });
  parallel::barrier(world);
  const Checkpoint checkpoint(folder);
  EXPECT_TRUE(checkpoint.index().files.contains(cat("optimizer-r", connection.rank(), ".safetensors")));
  const auto pieces = [&](const char* name) { return checkpoint.index().tensors.at(name).pieces.size(); };
  EXPECT_EQ(pieces("optimizer.exp_avg.head.weight"), 2u);
  const bool is_rounded = config.parallel.shard_gather_dtype == config::GatherDtype::Bf16;  // the whole is not what is kept
  EXPECT_EQ(pieces("head.weight"), config.parallel.shard == ShardStage::Full || is_rounded ? 2u : 0u);
  for (const auto& [name, value] : state) EXPECT_TRUE(at::equal(checkpoint.read(name), value)) << name;
  using Layouts = std::vector<std::pair<int64_t, ShardStage>>;  // ranks of tensor parallelism, stage
  const Layouts others = saving.parallel.shard == ShardStage::Full
                             ? Layouts{{1, ShardStage::None}, {2, ShardStage::None}}
                             : Layouts{{1, ShardStage::Full}, {connection.world_size() / 2, ShardStage::Optimizer}};
  for (const auto& [tensor_parallel, shard] : others) {
    config.parallel.shard = shard;
    config.parallel.tensor_parallel = tensor_parallel;
    TinySteps loaded(config, nullptr, ranks_of(connection));
    expect_own_bytes(folder, loaded);
    expect_equal_states(whole_state(loaded), state);
  }
  config = saving;
  TinySteps again(config, nullptr, ranks_of(connection));
  expect_own_bytes(folder, again);
}

const parallel::RankTest kPieces("sharded_pieces", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = tiny_config(root.path());
  config.loop.micro_batch_size = 2;
  config.optimizer.ema_decay = 0.5;
  const std::filesystem::path folder =
      std::filesystem::path(parallel::rank_scratch_folder()) / cat("of_", connection.world_size());
  for (const ShardStage stage : {ShardStage::Full, ShardStage::Gradients}) {
    config.parallel.shard = stage;
    if (stage == ShardStage::Gradients) config.parallel.shard_gather_dtype = config::GatherDtype::Bf16;
    config.parallel.tensor_parallel = connection.world_size() / 2;
    expect_pieces_move(connection, config, folder / cat("stage_", static_cast<int>(stage)) / "step_2");
  }
});

std::string text_of_error(const std::function<void()>& body) {
  try {
    body();
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "no error";
}

void flip_last_byte(const parallel::Group& world, const std::filesystem::path& path) {
  if (world.group_rank() == 0) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-1, std::ios::end);
    const auto last = static_cast<char>(file.get());
    file.seekp(-1, std::ios::end);
    file.put(static_cast<char>(~last));
  }
  parallel::barrier(world);
}

// Where one rank cannot write, nothing is published and the first rank says which; what there was stays.
const parallel::RankTest kRefused("sharded_pieces_refused", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = tiny_config(root.path());
  config.loop.micro_batch_size = 2;
  config.parallel.shard = ShardStage::Full;
  TinySteps steps(config, nullptr, ranks_of(connection));
  const parallel::Group world = ranks_of(connection).world_group;
  const std::filesystem::path folder = std::filesystem::path(parallel::rank_scratch_folder()) / "refused" / "step_1";
  RankTensors own = own_tensors(groups_of(steps), layout_of(steps));
  const auto write = [&] { write_shared_checkpoint(world, folder, own, [] { return std::optional(CheckpointIndex{}); }); };
  write();
  parallel::barrier(world);
  std::filesystem::remove(folder / "model-r1.safetensors");
  EXPECT_THAT(text_of_error([&] { Checkpoint{folder}; }), ::testing::HasSubstr("model-r1.safetensors. Use another checkpoint"));
  EXPECT_THAT(text_of_error([&] { open_shared_checkpoint(world, folder); }), ::testing::HasSubstr("a file is missing: path="));
  parallel::barrier(world);
  if (connection.rank() == 0) std::filesystem::remove_all(folder);
  if (connection.rank() == 1) own.pieces.front().name = "no_such_folder/model";
  const std::string text = text_of_error(write);
  parallel::barrier(world);
  EXPECT_FALSE(std::filesystem::exists(folder));
  EXPECT_TRUE(std::filesystem::is_empty(folder.parent_path()));
  if (connection.rank() != 0) return;
  EXPECT_THAT(text, ::testing::HasSubstr("cannot be saved: path="));
  EXPECT_THAT(text, ::testing::HasSubstr("[rank 1]"));
});

// Each rank looks at a share of the files, and all hear of what one finds.
const parallel::RankTest kOpened("sharded_pieces_opened", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = tiny_config(root.path());
  config.loop.micro_batch_size = 2;
  config.parallel.shard = ShardStage::Full;
  TinySteps steps(config, nullptr, ranks_of(connection));
  const parallel::Group world = ranks_of(connection).world_group;
  const std::filesystem::path folder = std::filesystem::path(parallel::rank_scratch_folder()) / "opened" / "step_1";
  write_shared_checkpoint(world, folder, own_tensors(groups_of(steps), layout_of(steps)),
                          [] { return std::optional(CheckpointIndex{}); });
  parallel::barrier(world);
  EXPECT_TRUE(open_shared_checkpoint(world, folder).contains("head.weight"));
  for (const char* name : {"model-r0.safetensors", "optimizer-r1.safetensors"}) {
    flip_last_byte(world, folder / name);
    EXPECT_THAT(text_of_error([&] { open_shared_checkpoint(world, folder); }),
                ::testing::AllOf(::testing::HasSubstr("not every rank can read it: path="), ::testing::HasSubstr(name)));
    parallel::barrier(world);
    flip_last_byte(world, folder / name);
  }
  EXPECT_NO_THROW(open_shared_checkpoint(world, folder));
});

// A rank that ends while the others write takes the new folder with it, and nothing else.
const parallel::RankTest kKilled("sharded_pieces_killed", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = tiny_config(root.path());
  config.loop.micro_batch_size = 2;
  config.parallel.shard = ShardStage::Full;
  TinySteps steps(config, nullptr, ranks_of(connection));
  const parallel::Group world = ranks_of(connection).world_group;
  const std::filesystem::path folder = std::filesystem::path(parallel::rank_scratch_folder()) / "killed";
  const auto write = [&](const char* name) {
    write_shared_checkpoint(world, folder / name, own_tensors(groups_of(steps), layout_of(steps)),
                            [] { return std::optional(CheckpointIndex{}); });
  };
  write("step_1");
  parallel::barrier(world);
  if (connection.rank() == 1) _exit(0);
  EXPECT_THROW(write("step_2"), CommError);
  EXPECT_TRUE(Checkpoint(folder / "step_1").contains("head.weight"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::cout << std::flush;
  _exit(testing::Test::HasFailure() ? 1 : 0);  // destructors would wait for the rank that is gone
});

TEST(ShardedCheckpoints, AreWrittenByTwoRanks) { parallel::run_on_ranks("sharded_pieces", 2); }
TEST(ShardedCheckpoints, AreWrittenByFourRanks) { parallel::run_on_ranks("sharded_pieces", 4); }
TEST(ShardedCheckpoints, AppearWholeOrNotAtAll) { parallel::run_on_ranks("sharded_pieces_refused", 2); }
TEST(ShardedCheckpoints, AreVerifiedByAllRanks) { parallel::run_on_ranks("sharded_pieces_opened", 2); }
TEST(ShardedCheckpoints, StayWhereARankEnds) { parallel::run_on_ranks("sharded_pieces_killed", 2); }
TEST(ShardedCheckpoints, MoveBetweenLayoutsBitByBit) { parallel::run_on_ranks("sharded_checkpoint", 4); }

}  // namespace
}  // namespace welkin::train
