// SPDX-License-Identifier: Apache-2.0
#include "train/interchange/initial_weights.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

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
