// SPDX-License-Identifier: Apache-2.0
// Files of a checkpoint that come from another node join those of the same checkpoint alone.
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>

#include "core/error.h"
#include "core/text.h"
#include "parallel/comm/collectives.h"
#include "rank_processes.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_store.h"
#include "train/nodes/folder_stream.h"

namespace welkin::train {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kStep = 5;

void write(const CheckpointStore& store, const char* group, double value) {
  std::filesystem::create_directories(store.folder());
  CheckpointIndex index;
  index.position.iteration = kStep;
  write_checkpoint(store.path_of(kStep), index, {{.name = group, .tensors = {{"w", at::full({64}, value)}}}});
}

// The second rank's folder of the step has `value`, and gets the first one's with 1.
void receive_over(const parallel::Group& pair, const CheckpointStore& store, double value) {
  write(store, "model", pair.group_rank() == 0 ? 1 : value);
  if (pair.group_rank() == 0) return send_checkpoint(pair, 1, store.path_of(kStep));
  if (value == 1) {
    EXPECT_TRUE(receive_files(pair, 0, store));
  } else {
    EXPECT_THAT([&] { receive_files(pair, 0, store); },
                ::testing::ThrowsMessage<CheckpointError>(HasSubstr("is of another run")));
  }
  EXPECT_NO_THROW(Checkpoint(store.path_of(kStep)));                                     // which checks its hashes
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(store.folder()), {}), 1);  // nothing is left aside
}

void check_neighbours(parallel::Connection& connection) {
  const parallel::Group pair = connection.make_group("pair", {{0, 1}, connection.rank()});
  const std::filesystem::path folder = std::filesystem::path(parallel::rank_scratch_folder()) / "places";
  for (const double value : {1.0, 2.0}) {
    receive_over(pair, CheckpointStore(folder / cat(value, " of rank ", connection.rank())), value);
  }
}

const parallel::RankTest neighbour_files("neighbour_files", check_neighbours);

TEST(NeighbourFiles, JoinThoseOfTheSameCheckpointAlone) { parallel::run_on_ranks("neighbour_files", 2); }

}  // namespace
}  // namespace welkin::train
