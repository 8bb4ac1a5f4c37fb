// SPDX-License-Identifier: Apache-2.0
// What needs no PyTorch on the other side; tests/e2e/install/interchange_*_test.py has the rest.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/error.h"
#include "scratch_folder.h"
#include "train/interchange/difference.h"
#include "train/interchange/export_state.h"
#include "train/interchange/import_state.h"

namespace welkin::train::interchange {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// A checkpoint of two parameters, of which one decays, after three steps of Adam.
fs::path small_checkpoint(const ScratchFolder& folder, double value = 1.5) {
  CheckpointIndex index;
  index.position.iteration = 3;
  index.parameters = {"z.weight", "a.bias"};  // not the order of the alphabet
  index.learning_rate = 0.25;
  const at::Tensor weight = at::arange(6, at::kFloat).view({2, 3}) + value, bias = at::full({3}, value, at::kFloat);
  const std::vector<CheckpointGroup> groups = {{.name = "model", .tensors = {{"z.weight", weight}, {"a.bias", bias}}},
                                               {.name = "optimizer",
                                                .tensors = {{"steps", at::full({}, 3.0, at::kFloat)},
                                                            {"exp_avg.z.weight", weight * 2},
                                                            {"exp_avg_sq.z.weight", weight * 3},
                                                            {"exp_avg.a.bias", bias * 2},
                                                            {"exp_avg_sq.a.bias", bias * 3}}},
                                               {.name = "state", .tensors = {{"updates", at::full({}, int64_t{3}, at::kLong)}}}};
  write_checkpoint(folder / "step_3", index, groups);
  return folder / "step_3";
}

std::vector<std::string> names_of(const State& state, const std::string& group) {
  std::vector<std::string> names;
  for (const StateTensor& tensor : state.tensors) {
    if (tensor.group == group) names.push_back(tensor.name);
  }
  return names;
}

TEST(Interchange, AnExportWithItsOptimizerComesBackBitForBit) {
  const ScratchFolder folder;
  const State ours = open_state(small_checkpoint(folder));
  EXPECT_THAT(names_of(ours, "model"), ElementsAre("z.weight", "a.bias"));
  for (const FileFormat format : {FileFormat::Torch, FileFormat::Safetensors}) {
    export_state(ours, {.format = format, .dtype = {}, .optimizer = true}, folder / "file");
    const State theirs = open_state(folder / "file");
    EXPECT_THAT(groups_of_one(ours, theirs), ElementsAre("state"));
    EXPECT_TRUE(is_equal(compare(ours, theirs))) << difference_table(compare(ours, theirs), true);
    EXPECT_TRUE(theirs.notes.empty());
  }
}

// An open of a pipe waits for somebody who writes.
TEST(Interchange, APipeIsRefused) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT([&] { open_state(folder / "pipe"); }, ThrowsMessage<Error>(HasSubstr("not a regular file: path=")));
}

TEST(Interchange, WeightDecayMakesTwoGroupsAndTheNamesSurvive) {
  const ScratchFolder folder;
  State ours = open_state(small_checkpoint(folder));
  ours.optimizer.weight_decay = 0.1;
  ours.optimizer.kind = "AdamW";
  export_state(ours, {.format = FileFormat::Torch, .dtype = {}, .optimizer = true}, folder / "file.pt");
  const State theirs = open_state(folder / "file.pt");
  EXPECT_TRUE(is_equal(compare(ours, theirs)));
  EXPECT_EQ(theirs.optimizer.kind, "AdamW");
  EXPECT_EQ(theirs.optimizer.weight_decay, 0.1);
  EXPECT_EQ(theirs.optimizer.rate, 0.25);
  EXPECT_EQ(theirs.iteration, 3);
  EXPECT_THAT(theirs.parameters, ElementsAre("z.weight", "a.bias"));
}

TEST(Interchange, ImportsWhatItExportedIntoAFolderOfOurs) {
  const ScratchFolder folder;
  const State ours = open_state(small_checkpoint(folder));
  export_state(ours, {.format = FileFormat::Torch, .dtype = at::kBFloat16, .optimizer = true}, folder / "file.pt");
  const State theirs = open_state(folder / "file.pt");
  EXPECT_EQ(theirs.find("z.weight")->dtype, Dtype::BF16);
  EXPECT_EQ(theirs.find("optimizer.exp_avg.z.weight")->dtype, Dtype::F32);
  const ImportReport report = import_state(theirs, {}, folder / "back");
  EXPECT_EQ(report.iteration, 3);
  EXPECT_EQ(report.optimizer_tensors, 5u);
  const Checkpoint back(folder / "back");
  EXPECT_EQ(back.index().origin, "file.pt");
  EXPECT_EQ(back.index().learning_rate, 0.25);
  EXPECT_TRUE(at::equal(back.read("z.weight"), ours.find("z.weight")->read()));  // small integers and halves fit bf16
  EXPECT_THAT([&] { import_state(theirs, {}, folder / "back"); },
              ThrowsMessage<CheckpointError>(HasSubstr("the folder exists: path=")));
}

TEST(Interchange, ComparesTensorByTensor) {
  const ScratchFolder one, two;
  const State a = open_state(small_checkpoint(one, 1.5)), b = open_state(small_checkpoint(two, 1.75));
  EXPECT_TRUE(is_equal(compare(a, a)));
  const auto rows = compare(a, b);
  EXPECT_FALSE(is_equal(rows));
  EXPECT_EQ(rows[0].name, "z.weight");
  EXPECT_DOUBLE_EQ(rows[0].largest, 0.25);
  EXPECT_THAT(difference_table(rows, false), HasSubstr("8 tensors: 2 with equal bits, 6 different"));
  State less = b;
  less.tensors.erase(less.tensors.begin());
  less.tensors.front().shape = {4};
  const std::string table = difference_table(compare(a, less), false);
  EXPECT_THAT(table, HasSubstr("only in the first"));
  EXPECT_THAT(table, HasSubstr("other shape, 3 / 4"));
}

TEST(Interchange, AValueTooLargeForTheTypeIsNotWritten) {
  const ScratchFolder folder;
  const State ours = open_state(small_checkpoint(folder, 1e6));
  EXPECT_THAT([&] { export_state(ours, {.format = FileFormat::Torch, .dtype = at::kHalf}, folder / "file.pt"); },
              ThrowsMessage<CheckpointError>(HasSubstr("a value is too large for the type: tensor=z.weight, dtype=F16")));
  EXPECT_FALSE(fs::exists(folder / "file.pt"));
}

TEST(Interchange, WeightsOfAnotherModelChangeNothing) {
  const ScratchFolder folder;
  const State ours = open_state(small_checkpoint(folder));
  const at::Tensor weight = at::zeros({2, 3}), bias = at::zeros({4});
  EXPECT_THAT(
      [&] {
        load_weights(ours, {.name = "model", .tensors = {{"z.weight", weight}, {"a.bias", bias}, {"b", bias}}});
      },
      ThrowsMessage<CheckpointError>(HasSubstr("not stored=1 (b), not wanted=0, of another shape=1 (a.bias (3) for (4))")));
  EXPECT_EQ(weight.abs().max().item<double>(), 0);
  load_weights(ours, {.name = "model", .tensors = {{"z.weight", weight}, {"a.bias", at::zeros({3}, at::kDouble)}}});
  EXPECT_TRUE(at::equal(weight, ours.find("z.weight")->read()));
}

TEST(Interchange, TakesOffWhatWrappersPutInFront) {
  std::vector<std::string> names = {"module._orig_mod.a._orig_mod.w", "module.module.b"};
  strip_wrappers(names);
  EXPECT_THAT(names, ElementsAre("a.w", "module.b"));
  names = {"module.a", "head"};
  strip_wrappers(names);
  EXPECT_THAT(names, ElementsAre("module.a", "head"));
  names = {"_orig_mod.a", "a"};
  EXPECT_THAT([&] { strip_wrappers(names); }, ThrowsMessage<CheckpointError>(HasSubstr("two tensors have the same name")));
}

TEST(Interchange, SaysWhatAPathIsNot) {
  const ScratchFolder folder;
  EXPECT_THAT([&] { open_state(folder / "none"); },
              ThrowsMessage<CheckpointError>(HasSubstr("there is no such checkpoint: path=")));
  EXPECT_THAT([&] { open_state(folder.path()); },
              ThrowsMessage<CheckpointError>(HasSubstr("the folder is neither a checkpoint nor a run: path=")));
}

}  // namespace
}  // namespace welkin::train::interchange
