// SPDX-License-Identifier: Apache-2.0
// What the tests of shared-out states look at: weights and optimizer states of a tiny run, whole.
#pragma once

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tiny_ranks.h"
#include "train/checkpoint/whole_tensors.h"
#include "train/step/model_setup.h"

namespace welkin::train {

inline TensorLayout layout_of(TinySteps& steps) {
  const TrainSetup& setup = steps.setup();
  return {.table = setup.table,
          .groups = setup.layout.groups,
          .shards = setup.layout.sharding.shards,
          .stages = setup.layout.groups.along(parallel::Axis::Pp)};
}

inline CheckpointGroup optimizer_group(TinySteps& steps) {
  CheckpointGroup group{.name = "optimizer", .tensors = {}};
  for (const NamedState& state : steps.setup().optimizer->states()) {
    group.tensors.push_back({.name = state.name, .value = state.value, .run = state.run});
  }
  return group;
}

inline std::vector<CheckpointGroup> groups_of(TinySteps& steps) {
  steps.setup().data_parallel->complete_weights();
  std::vector<CheckpointGroup> groups{model_group(steps.setup().table, *steps.setup().model), optimizer_group(steps)};
  if (steps.setup().weight_average) {
    groups.push_back({.name = "average", .tensors = {}});
    for (const NamedState& state : steps.setup().weight_average->states()) {
      groups.back().tensors.push_back({state.name, state.value});
    }
  }
  return groups;
}

// Weights and states under their names, whole. Every rank calls it.
inline std::map<std::string, at::Tensor> whole_state(TinySteps& steps) {
  std::map<std::string, at::Tensor> all;
  for (const CheckpointGroup& group : groups_of(steps)) {
    for (const CheckpointTensor& tensor : gather_whole(group, layout_of(steps)).tensors) {
      all[stored_name(group.name, tensor.name)] = tensor.value.detach().clone();
    }
  }
  return all;
}

inline void expect_equal_states(const std::map<std::string, at::Tensor>& got, const std::map<std::string, at::Tensor>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (const auto& [name, value] : wanted) EXPECT_TRUE(at::equal(got.at(name), value)) << name;
}

}  // namespace welkin::train
