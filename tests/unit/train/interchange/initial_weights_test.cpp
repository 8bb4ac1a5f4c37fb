// SPDX-License-Identifier: Apache-2.0
#include "train/interchange/initial_weights.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "scratch_folder.h"
#include "train/interchange/export_state.h"

namespace welkin::train::interchange {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

StateTensor stored(const std::string& name, std::vector<int64_t> shape, double value) {
  return {.name = name, .group = "model", .dtype = Dtype::F32, .shape = shape, .read = [=] { return at::full(shape, value); }};
}

// Another model's: an encoder of two layers and a head for three channels.
State other_model() {
  State state;
  state.path = "other.pt";
  state.format = "torch";
  state.tensors = {stored("encoder.0.weight", {2, 2}, 1), stored("encoder.1.weight", {2, 2}, 2), stored("head.weight", {3}, 3),
                   stored("extra", {1}, 4)};
  return state;
}

struct OwnModel {
  at::Tensor first = at::zeros({2, 2}), second = at::zeros({2, 2}), head = at::zeros({4}), scale = at::zeros({1});
  CheckpointGroup group() const {
    return {.name = "model",
            .tensors = {{"blocks.0.weight", first}, {"blocks.1.weight", second}, {"head.weight", head}, {"scale", scale}}};
  }
};

double value_of(const at::Tensor& tensor) { return tensor.flatten()[0].item<double>(); }

TEST(InitialWeights, TakesWhatFitsAndSaysWhatDoesNot) {
  const OwnModel own;
  EXPECT_THAT(take_weights(other_model(), {.renames = parse_renames("encoder.*=blocks.*"), .partial = true}, own.group()),
              ElementsAre("Weights of 2 of 4 tensors are those of other.pt (torch), the others keep their initial values",
                          "  not in the file: scale", "  of another shape: head.weight (3) for (4)", "  unused: extra"));
  EXPECT_EQ(value_of(own.first), 1);
  EXPECT_EQ(value_of(own.second), 2);
  EXPECT_EQ(value_of(own.head), 0);
}

TEST(InitialWeights, WhatDoesNotFitIsRefusedWithoutPartial) {
  const OwnModel own;
  EXPECT_THAT([&] { take_weights(other_model(), {.renames = parse_renames("encoder.*=blocks.*")}, own.group()); },
              ThrowsMessage<CheckpointError>(::testing::AllOf(
                  HasSubstr("not stored=1 (scale), not wanted=1 (extra), of another shape=1 (head.weight (3) for (4))"),
                  HasSubstr("A run may begin with what fits: --init_partial, and --init_map for other names."))));
  EXPECT_EQ(value_of(own.first), 0);
  const CheckpointGroup whole{.name = "model", .tensors = {{"blocks.0.weight", own.first}, {"blocks.1.weight", own.second}}};
  EXPECT_THAT(take_weights(other_model(), {.renames = parse_renames("encoder.*->blocks.*,*=")}, whole),
              ElementsAre("Weights are those of other.pt (torch)"));
  EXPECT_EQ(value_of(own.second), 2);
}

// Of a weight of (4, 6) the second half of the columns, of which a rank has five elements from the third on.
TEST(InitialWeights, ARankTakesWhatItHasOfThem) {
  const ScratchFolder folder;
  const at::Tensor weight = at::arange(24, at::kFloat).view({4, 6});
  write_checkpoint(folder / "step_1", {}, {{.name = "model", .tensors = {{"w", weight}}}});
  export_state(open_state(folder / "step_1"), {.format = FileFormat::Safetensors, .dtype = {}}, folder / "a.safetensors");
  State of_wholes;
  of_wholes.tensors = {{.name = "w", .group = "model", .dtype = Dtype::F32, .shape = {4, 6}, .read = [=] { return weight; }}};
  for (const State& state : {open_state(folder / "step_1"), open_state(folder / "a.safetensors"), of_wholes}) {
    for (const bool partial : {false, true}) {
      CheckpointTensor own{.name = "w", .value = at::zeros({5}), .whole_shape = {4, 6}};
      own.piece = PiecePlace{.whole_shape = {4, 6}, .layout = {.order = {0, 1}, .dim = 1, .ranks = 2}, .part = 1, .begin = 2};
      take_weights(state, {.renames = {}, .partial = partial}, {.name = "model", .tensors = {own}});
      EXPECT_TRUE(at::equal(own.value, at::tensor({5.0F, 9.0F, 10.0F, 11.0F, 15.0F}))) << state.format << " " << own.value;
    }
  }
}

// What other ranks have has a shape alone; what is kept in a file is given there.
TEST(InitialWeights, GoWhereTheyAreKept) {
  const OwnModel own;
  at::Tensor given;
  CheckpointGroup group = own.group();
  group.tensors[0].store = [&given](const at::Tensor& values) { given = values; };
  group.tensors[1].value = at::empty({2, 2}, at::TensorOptions(at::kMeta));
  take_weights(other_model(), {.renames = parse_renames("encoder.*=blocks.*"), .partial = true}, group);
  EXPECT_EQ(value_of(given), 1);
  EXPECT_EQ(value_of(own.first), 0);
}

TEST(InitialWeights, NothingThatFitsIsAnError) {
  const OwnModel own;
  EXPECT_THAT(
      [&] {
        take_weights(other_model(), {.renames = {}, .partial = true}, {.name = "model", .tensors = {{"w", own.first}}});
      },
      ThrowsMessage<CheckpointError>(HasSubstr("none of the weights fits this model: path=other.pt")));
  EXPECT_THAT([&] { take_weights(other_model(), {.renames = parse_renames("encoder.*=same"), .partial = true}, own.group()); },
              ThrowsMessage<CheckpointError>(HasSubstr(
                  "two tensors get the same name: name=same, tensors=encoder.0.weight and encoder.1.weight. Change --init_map")));
}

TEST(InitialWeights, AMapHasAForm) {
  EXPECT_THAT([] { parse_renames("encoder"); }, ThrowsMessage<ConfigError>(HasSubstr("this maps no names: init_map=encoder")));
  EXPECT_THAT([] { parse_renames("a=b,=c"); }, ThrowsMessage<ConfigError>(HasSubstr("this maps no names: init_map==c")));
  EXPECT_THAT([] { parse_renames("a.*=b.*.*"); },
              ThrowsMessage<ConfigError>(HasSubstr("the new name has more stars than the old one: init_map=a.*=b.*.*")));
  EXPECT_TRUE(parse_renames("").empty());
}

}  // namespace
}  // namespace welkin::train::interchange
