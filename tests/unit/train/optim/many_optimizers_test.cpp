// SPDX-License-Identifier: Apache-2.0
// What holds for every optimizer: the way of training equals aten's operators in double, a skipped step changes nothing, the
// order of memory does not matter. tests/parity/optimizer_cases_test.py compares them with other implementations.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sin.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/error.h"
#include "ops/base/instruction_set.h"
#include "tolerance.h"
#include "train/learn/registries.h"

namespace welkin::train {
namespace {

at::Tensor rate_of(double value) { return at::full({}, value, at::kDouble); }
at::Tensor found_inf_of(bool skip) { return at::full({}, skip ? 1.0 : 0.0, at::kFloat); }
at::Tensor wave_values(at::IntArrayRef shape, double phase) {
  return at::sin(at::arange(c10::multiply_integers(shape), at::kDouble) * 0.37 + phase).view(shape).to(at::kFloat);
}

struct OptimizerChoice {
  std::string name, state = "fp32";
  bool factored = true;
};

void PrintTo(const OptimizerChoice& choice, std::ostream* out) { *out << choice.name << " " << choice.state; }

config::RunConfig config_of(const OptimizerChoice& choice) {
  config::RunConfig config;
  config.optimizer.optimizer = choice.name;
  config.optimizer.betas = {0.9, 0.95};
  config.optimizer.eps = 1e-6;
  config.optimizer.weight_decay = 0.05;
  config.optimizer.optimizer_state = config::choice_named<config::OptimizerState>(choice.state).value();
  config.optimizer.adafactor_factored = choice.factored;
  config.optimizer.trust_coefficient = 0.02;
  return config;
}

OptimizerPtr make(const OptimizerChoice& choice, const std::vector<OptimizerParameter>& parameters) {
  Registries registries;
  add_builtins(registries);
  return registries.optimizers.at(choice.name).make(config_of(choice), parameters);
}

// A matrix, a vector without decay, and kernels in the order of memory that the U-Net's convolutions have, transposed ones too.
std::vector<OptimizerParameter> parameters_of(at::ScalarType dtype, bool permuted = true) {
  const at::Tensor kernel = wave_values({3, 4, 5, 6}, 2), transposed = wave_values({3, 2, 40, 24}, 6).permute({2, 3, 0, 1});
  return {{"a.weight", wave_values({65, 80}, 0).to(dtype), true},
          {"a.bias", wave_values({65}, 1).to(dtype), false},
          {"k.weight", (permuted ? kernel.permute({3, 2, 0, 1}) : kernel.permute({3, 2, 0, 1}).contiguous()).to(dtype), true},
          {"t.weight", (permuted ? transposed : transposed.contiguous()).to(dtype), true}};
}

void set_gradients(const std::vector<OptimizerParameter>& parameters, int step) {
  for (const OptimizerParameter& parameter : parameters) {
    const at::Tensor gradient = at::empty_like(parameter.value);
    parameter.value.mutable_grad() = gradient.copy_(wave_values(parameter.value.sizes(), 3 + step) / (step + 1));
  }
}

StepInputs inputs_of(int step, bool skip = false) {
  return {.rate = rate_of(0.01 / (step + 1)), .found_inf = found_inf_of(skip), .gradient_scale = at::full({}, 0.5, at::kFloat)};
}

class ManyOptimizers : public ::testing::TestWithParam<OptimizerChoice> {};

// Averages of fewer bits are rounded to the same words or codes but where the two arithmetics fall on two sides of a border.
TEST_P(ManyOptimizers, OfFloatsEqualThoseOfDoublesOnEverySet) {
  const ops::InstructionSet before = ops::instruction_set();
  for (const auto set : {ops::InstructionSet::Portable, ops::InstructionSet::Avx2, ops::InstructionSet::Avx512}) {
    if (!ops::is_supported(set)) continue;
    ops::set_instruction_set(set);
    const auto single = parameters_of(at::kFloat), wide = parameters_of(at::kDouble);
    const OptimizerPtr own = make(GetParam(), single), reference = make(GetParam(), wide);
    for (int step = 0; step < 5; ++step) {
      set_gradients(single, step);
      set_gradients(wide, step);
      own->step(inputs_of(step, step == 2));
      reference->step(inputs_of(step, step == 2));
    }
    const int64_t length = GetParam().name == "Muon" ? 1 << 16 : 5200;  // its iteration multiplies roundings
    for (size_t i = 0; i < single.size(); ++i) {
      EXPECT_TRUE(tests::close(single[i].value, wide[i].value, at::kFloat, length)) << single[i].name << " " << ops::name_of(set);
    }
  }
  ops::set_instruction_set(before);
}

TEST_P(ManyOptimizers, LeaveEverythingAloneWhenTheStepIsSkipped) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const auto parameters = parameters_of(dtype);
    const OptimizerPtr optimizer = make(GetParam(), parameters);
    for (int step = 0; step < 2; ++step) {
      set_gradients(parameters, step);
      optimizer->step(inputs_of(step));
    }
    std::vector<at::Tensor> before;
    for (const auto& parameter : parameters) before.push_back(parameter.value.clone());
    for (const NamedState& state : optimizer->states()) before.push_back(state.value.clone());
    for (const auto& parameter : parameters) parameter.value.mutable_grad().fill_(NAN);
    optimizer->step(inputs_of(2, /*skip=*/true));
    std::vector<at::Tensor> after;
    for (const auto& parameter : parameters) after.push_back(parameter.value);
    for (const NamedState& state : optimizer->states()) after.push_back(state.value);
    for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(at::equal(after[i], before[i])) << i << " " << dtype;
  }
}

TEST_P(ManyOptimizers, FollowTheStridesOfTheirParameters) {
  std::vector<std::vector<OptimizerParameter>> both{parameters_of(at::kFloat, true), parameters_of(at::kFloat, false)};
  for (const auto& parameters : both) {
    const OptimizerPtr optimizer = make(GetParam(), parameters);
    for (int step = 0; step < 3; ++step) {
      set_gradients(parameters, step);
      optimizer->step(inputs_of(step));
    }
  }
  for (size_t i = 0; i < both[0].size(); ++i) {
    EXPECT_TRUE(tests::close(both[0][i].value, both[1][i].value, at::kFloat, 5200)) << both[0][i].name;
  }
}

// A copy of the states continues as the original does: what a checkpoint holds suffices.
TEST_P(ManyOptimizers, ContinueFromTheirStatesBitForBit) {
  const auto first = parameters_of(at::kFloat), second = parameters_of(at::kFloat);
  const OptimizerPtr whole = make(GetParam(), first);
  for (int step = 0; step < 4; ++step) {
    if (step == 2) {
      for (size_t i = 0; i < first.size(); ++i) second[i].value.copy_(first[i].value);
      const OptimizerPtr resumed = make(GetParam(), second);
      const auto from = whole->states(), to = resumed->states();
      ASSERT_EQ(from.size(), to.size());
      for (size_t i = 0; i < from.size(); ++i) {
        EXPECT_EQ(from[i].name, to[i].name);
        to[i].value.copy_(from[i].value);
      }
      for (int later = 2; later < 4; ++later) {
        set_gradients(second, later);
        resumed->step(inputs_of(later));
      }
    }
    set_gradients(first, step);
    whole->step(inputs_of(step));
  }
  for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(at::equal(first[i].value, second[i].value)) << first[i].name;
}

INSTANTIATE_TEST_SUITE_P(All, ManyOptimizers,
                         ::testing::Values(OptimizerChoice{"Lion"}, OptimizerChoice{"LAMB"}, OptimizerChoice{"LARS"},
                                           OptimizerChoice{"Adafactor"}, OptimizerChoice{"Adafactor", "fp32", false},
                                           OptimizerChoice{"Muon"}),
                         [](const auto& row) { return row.param.name + (row.param.factored ? "" : "_unfactored"); });

// Two ranks with the halves of a matrix: the sums are exchanged by hand.
class PartsOfParameters : public ::testing::TestWithParam<OptimizerChoice> {};

TEST_P(PartsOfParameters, MoveAsTheWhole) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const auto whole = std::vector<OptimizerParameter>{{"w.weight", wave_values({64, 70}, 0).to(dtype), true},
                                                       {"b", wave_values({9}, 1).to(dtype), false}};
    std::vector<std::vector<OptimizerParameter>> parts;
    for (int64_t rank = 0; rank < 2; ++rank) {
      parts.push_back({{"w.weight", whole[0].value.narrow(0, 32 * rank, 32).clone(), true, true, 64 * 70},
                       {"b", whole[1].value.clone(), false, false, 9}});
    }
    const OptimizerPtr optimizer = make(GetParam(), whole);
    const OptimizerPtr of_parts[] = {make(GetParam(), parts[0]), make(GetParam(), parts[1])};
    std::vector<StepInputs> inputs;
    for (int step = 0; step < 3; ++step) {
      set_gradients(whole, step);
      optimizer->step(inputs_of(step));
      // The first rank's sums are learnt by a step whose result is taken back.
      at::Tensor sums;
      const auto states_before = [&](int rank) {
        std::vector<at::Tensor> all;
        for (const auto& parameter : parts[static_cast<size_t>(rank)]) all.push_back(parameter.value.clone());
        for (const NamedState& state : of_parts[rank]->states()) all.push_back(state.value.clone());
        return all;
      };
      for (int rank = 0; rank < 2; ++rank) {
        auto& own = parts[static_cast<size_t>(rank)];
        own[0].value.mutable_grad() = whole[0].value.grad().narrow(0, 32 * rank, 32).clone();
        own[1].value.mutable_grad() = whole[1].value.grad().clone();
        const auto before = states_before(rank);
        StepInputs listening = inputs_of(step);
        listening.sum_over_parts = [&](const at::Tensor& numbers) {
          EXPECT_EQ(numbers.sizes(), at::IntArrayRef({2, 2}));
          sums = sums.defined() ? sums + numbers : numbers.clone();
          return numbers;
        };
        of_parts[rank]->step(listening);
        size_t i = 0;
        for (const auto& parameter : own) parameter.value.copy_(before[i++]);
        for (const NamedState& state : of_parts[rank]->states()) state.value.copy_(before[i++]);
      }
      for (int rank = 0; rank < 2; ++rank) {
        StepInputs told = inputs_of(step);
        told.sum_over_parts = [&](const at::Tensor& numbers) {
          at::Tensor result = numbers.clone();
          result.select(1, 0).copy_(sums.select(1, 0));
          return result;
        };
        of_parts[rank]->step(told);
      }
    }
    const at::Tensor joined = at::cat({parts[0][0].value, parts[1][0].value});
    EXPECT_TRUE(tests::close(joined, whole[0].value, dtype, 64 * 70)) << dtype;
    EXPECT_TRUE(tests::close(parts[1][1].value, whole[1].value, dtype, 9)) << dtype;
  }
}

INSTANTIATE_TEST_SUITE_P(Normed, PartsOfParameters,
                         ::testing::Values(OptimizerChoice{"LAMB"}, OptimizerChoice{"LARS"},
                                           OptimizerChoice{"Adafactor", "fp32", false}),
                         [](const auto& row) { return row.param.name; });

// Whoever cuts parameters cuts them where blocks of codes begin.
TEST(SplitParameters, BeginAtBlocksOfCodes) {
  std::vector<OptimizerParameter> part{{"w.weight", wave_values({64, 70}, 0), true, true, 128 * 70}};
  for (const int64_t begin : {0, 512}) {
    part.front().runs.begin = begin;
    EXPECT_NO_THROW(make({"AdamW", "8bit"}, part)) << begin;
  }
  part.front().runs.begin = 100;
  EXPECT_THROW(make({"AdamW", "8bit"}, part), InternalError);
  EXPECT_NO_THROW(make({"AdamW", "bf16"}, part));
}

}  // namespace
}  // namespace welkin::train
