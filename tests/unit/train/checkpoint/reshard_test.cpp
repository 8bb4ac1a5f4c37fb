// SPDX-License-Identifier: Apache-2.0
// Checkpoints written again for another number of ranks: the same bits, and the place in the run.
#include "train/checkpoint/reshard.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "scratch_folder.h"

namespace welkin::train {
namespace {

using ::testing::HasSubstr;

CheckpointIndex some_index() {
  CheckpointIndex index;
  index.position = {.iteration = 7, .epoch = 1, .step_in_epoch = 3};
  index.parameters = {"a.weight", "a.bias"};
  index.config = "model: vit\n";
  return index;
}

std::vector<CheckpointGroup> some_groups() {
  return {{.name = "model",
           .tensors = {{"a.weight", at::arange(35, at::kFloat).view({7, 5})}, {"a.bias", at::arange(5, at::kFloat)}}},
          {.name = "optimizer",
           .tensors = {{"exp_avg.a.weight", at::arange(35, at::kFloat).view({7, 5}) * 0.1},
                       {"steps", at::full({}, 3.0, at::kFloat)}}},
          {.name = "state", .tensors = {{"last_lr", at::full({1}, 0.5, at::kDouble)}}}};
}

void expect_same(const Checkpoint& got, const Checkpoint& wanted) {
  ASSERT_EQ(got.index().tensors.size(), wanted.index().tensors.size());
  for (const auto& [name, record] : wanted.index().tensors) {
    const at::Tensor value = got.read(name);
    EXPECT_EQ(value.scalar_type(), wanted.read(name).scalar_type()) << name;
    EXPECT_TRUE(at::equal(value, wanted.read(name))) << name;
  }
  EXPECT_EQ(got.index().position, wanted.index().position);
  EXPECT_EQ(got.index().parameters, wanted.index().parameters);
  EXPECT_EQ(got.index().config, wanted.index().config);
}

TEST(Reshard, KeepsEveryBitForAnyNumberOfRanks) {
  const ScratchFolder folder;
  write_checkpoint(folder / "step_7", some_index(), some_groups());
  const Checkpoint first(folder / "step_7");
  ASSERT_EQ(reshard(first, 3, folder / "of_3").cut, 3);
  const Checkpoint of_three(folder / "of_3");
  expect_same(of_three, first);
  EXPECT_EQ(of_three.index().tensors.at("a.weight").pieces.size(), 3u);
  EXPECT_TRUE(of_three.index().tensors.at("optimizer.steps").pieces.empty());
  EXPECT_TRUE(std::filesystem::exists(folder / "of_3" / "optimizer-r2.safetensors"));
  reshard(of_three, 50, folder / "new" / "of_50");  // more ranks than rows: some have nothing of it
  const Checkpoint of_many(folder / "new" / "of_50");
  expect_same(of_many, first);
  reshard(of_many, 1, folder / "again");
  const Checkpoint again(folder / "again");
  expect_same(again, first);
  EXPECT_TRUE(again.index().tensors.at("a.weight").pieces.empty());
  EXPECT_EQ(again.index().files.size(), first.index().files.size());
}

TEST(Reshard, LeavesWhatIsThere) {
  const ScratchFolder folder;
  write_checkpoint(folder / "step_7", some_index(), some_groups());
  try {
    reshard(Checkpoint(folder / "step_7"), 2, folder / "step_7");
    ADD_FAILURE() << "no error";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the path exists already: path="));
  }
}

}  // namespace
}  // namespace welkin::train
