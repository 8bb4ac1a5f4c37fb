// SPDX-License-Identifier: Apache-2.0
// Optimizers and moving averages whose states are elsewhere have the bits of those that hold them, step by step.
#include "train/offload/offloaded_optimizer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sin.h>
#include <c10/util/accumulate.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/error.h"
#include "scratch_folder.h"
#include "train/learn/registries.h"
#include "train/offload/block_ring.h"
#include "train/offload/offload.h"
#include "train/offload/offloaded_average.h"

namespace welkin::train {
namespace {

constexpr int64_t kBufferBytes = 200'000;  // two of the kernels' pieces of Adam's states

struct OffloadChoice {
  std::string name, state = "fp32";
  bool factored = true;
};

void PrintTo(const OffloadChoice& choice, std::ostream* out) { *out << choice.name << " " << choice.state; }

config::RunConfig offload_config(const OffloadChoice& choice) {
  config::RunConfig config;
  config.optimizer.optimizer = choice.name;
  config.optimizer.betas = {0.9, 0.95};
  config.optimizer.eps = 1e-6;
  config.optimizer.weight_decay = 0.05;
  config.optimizer.optimizer_state = config::choice_named<config::OptimizerState>(choice.state).value();
  config.optimizer.adafactor_factored = choice.factored;
  config.optimizer.trust_coefficient = 0.02;
  config.optimizer.ema_decay = 0.9;
  return config;
}

at::Tensor wave_of(at::IntArrayRef shape, double phase) {
  return at::sin(at::arange(c10::multiply_integers(shape), at::kDouble) * 0.37 + phase).view(shape).to(at::kFloat);
}

// The first is larger than a buffer, the fourth lies in the order of memory that the U-Net's kernels have. Of a parameter with
// fewer rows than ranks some have none.
std::vector<OptimizerParameter> offload_parameters(bool has_empty = false) {
  std::vector<OptimizerParameter> parameters{{"a.weight", wave_of({210, 201}, 0), true},
                                             {"a.bias", wave_of({210}, 1), false},
                                             {"b.weight", wave_of({65, 80}, 4), true},
                                             {"k.weight", wave_of({3, 4, 65, 60}, 2).permute({3, 2, 0, 1}), true}};
  if (has_empty) parameters.push_back({"empty.weight", at::full({0, 4}, 1.0, at::kFloat), true});
  return parameters;
}

void give_gradients(const std::vector<OptimizerParameter>& parameters, int step) {
  for (const OptimizerParameter& parameter : parameters) {
    if (parameter.name == "b.weight" && step == 1) {
      parameter.value.mutable_grad() = at::Tensor();  // left alone
      continue;
    }
    const at::Tensor gradient = at::empty_like(parameter.value);
    parameter.value.mutable_grad() = gradient.copy_(wave_of(parameter.value.sizes(), 3 + step) / (step + 1));
  }
}

StepInputs offload_inputs(int step) {
  return {.rate = at::full({}, 0.01 / (step + 1), at::kDouble),
          .found_inf = at::full({}, step == 2 ? 1.0 : 0.0, at::kFloat),
          .gradient_scale = at::full({}, 0.5, at::kFloat)};
}

std::map<std::string, at::Tensor> values_of(std::vector<NamedState> states) {
  std::map<std::string, at::Tensor> values;
  for (const NamedState& state : states) {
    EXPECT_TRUE(values.emplace(state.name, state.read ? state.read() : state.value.clone()).second) << state.name;
    if (state.read) {
      EXPECT_EQ(state.held_bytes(), 0);
      EXPECT_EQ(state.value.sizes(), values[state.name].sizes());
      EXPECT_EQ(state.value.storage().nbytes(), 0U);
    }
  }
  return values;
}

void expect_equal_values(const std::map<std::string, at::Tensor>& got, const std::map<std::string, at::Tensor>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (const auto& [name, value] : wanted) {
    EXPECT_TRUE(at::equal(got.at(name), value)) << name;
    EXPECT_EQ(got.at(name).strides(), value.strides()) << name;
    EXPECT_EQ(got.at(name).scalar_type(), value.scalar_type()) << name;
  }
}

enum class Kept { InFile, InHost, Staged };

OffloadPlan plan_for(const Registries& registries, const OffloadChoice& choice, const ScratchFolder& root, Kept kept) {
  const OptimizerEntry& entry = registries.optimizers.at(choice.name);
  OffloadPlan plan{.scope = choice.state == "fp32" ? entry.scope : UpdateScope::Parameter,
                   .bytes_per_element = 8,
                   .buffer_bytes = kBufferBytes,
                   .staged = kept == Kept::Staged};
  plan.make_store = [path = root.path(), kept](HostMemory memory) -> std::unique_ptr<BlockStore> {
    if (kept != Kept::InFile) return std::make_unique<HostBlocks>(std::move(memory));
    return std::make_unique<FileBlocks>(path, "optimizer states", std::move(memory));
  };
  return plan;
}

class OffloadedOptimizers : public ::testing::TestWithParam<OffloadChoice> {
 protected:
  OffloadedOptimizers() { add_builtins(registries_); }
  OptimizerPtr held(const std::vector<OptimizerParameter>& parameters) const {
    return registries_.optimizers.at(GetParam().name).make(offload_config(GetParam()), parameters);
  }
  std::unique_ptr<OffloadedOptimizer> offloaded(const std::vector<OptimizerParameter>& parameters, Kept kept) const {
    return std::make_unique<OffloadedOptimizer>(offload_config(GetParam()), registries_.optimizers.at(GetParam().name).make,
                                                parameters, plan_for(registries_, GetParam(), root_, kept));
  }

  ScratchFolder root_;
  Registries registries_;
};

TEST_P(OffloadedOptimizers, HaveTheBitsOfThoseThatHoldTheirStates) {
  for (const Kept kept : {Kept::InFile, Kept::InHost, Kept::Staged}) {
    const bool has_empty = registries_.optimizers.at(GetParam().name).scope == UpdateScope::Element;
    const auto parameters = offload_parameters(has_empty), wanted = offload_parameters(has_empty);
    const OptimizerPtr own = offloaded(parameters, kept), reference = held(wanted);
    EXPECT_EQ(own->takes_gradient_scale(), reference->takes_gradient_scale());
    for (int step = 0; step < 5; ++step) {
      give_gradients(parameters, step);
      give_gradients(wanted, step);
      own->step(offload_inputs(step));
      reference->step(offload_inputs(step));
      for (size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_TRUE(at::equal(parameters[i].value, wanted[i].value)) << wanted[i].name << " " << step;
      }
      if (step == 3) expect_equal_values(values_of(own->states()), values_of(reference->states()));
    }
    expect_equal_values(values_of(own->states()), values_of(reference->states()));
  }
}

// A run that begins without offload goes on with it, and back.
TEST_P(OffloadedOptimizers, TakeOverStatesAndHandThemBack) {
  const auto parameters = offload_parameters(), wanted = offload_parameters();
  const OptimizerPtr first = held(parameters), reference = held(wanted);
  const auto step_both = [&](Optimizer& own, int step) {
    give_gradients(parameters, step);
    give_gradients(wanted, step);
    own.step(offload_inputs(step));
    reference->step(offload_inputs(step));
  };
  for (int step = 0; step < 2; ++step) step_both(*first, step);
  const auto second = offloaded(parameters, Kept::InFile);
  const auto before = values_of(first->states());
  for (const NamedState& state : second->states()) {
    if (state.write) {
      state.write(before.at(state.name));
    } else {
      state.value.copy_(before.at(state.name));
    }
  }
  for (int step = 3; step < 5; ++step) step_both(*second, step);
  const OptimizerPtr third = held(parameters);
  const auto after = values_of(second->states());
  for (const NamedState& state : third->states()) state.value.copy_(after.at(state.name));
  step_both(*third, 5);
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(at::equal(parameters[i].value, wanted[i].value)) << wanted[i].name;
}

INSTANTIATE_TEST_SUITE_P(All, OffloadedOptimizers,
                         ::testing::Values(OffloadChoice{"Adam"}, OffloadChoice{"AdamW"}, OffloadChoice{"SGD"},
                                           OffloadChoice{"Lion"}, OffloadChoice{"LAMB"}, OffloadChoice{"LARS"},
                                           OffloadChoice{"Adafactor"}, OffloadChoice{"Adafactor", "fp32", false},
                                           OffloadChoice{"Muon"}, OffloadChoice{"AdamW", "bf16"}, OffloadChoice{"Adam", "8bit"}),
                         [](const auto& row) {
                           return row.param.name + "_" + row.param.state + (row.param.factored ? "" : "_whole");
                         });

TEST(OffloadedOptimizer, CutsLargeParametersWhereItMay) {
  const auto parameters = offload_parameters();
  const auto units = state_units(parameters, UpdateScope::Element, 8, kBufferBytes);
  int64_t elements = 0;
  for (const StateWindows& unit : units) {
    int64_t own = 0;
    for (const StateWindow& window : unit) own += window.count;
    EXPECT_LE(own * 8, kBufferBytes);
    elements += own;
  }
  EXPECT_EQ(elements, 210 * 201 + 210 + 65 * 80 + 3 * 4 * 65 * 60);
  for (const StateWindows& unit : state_units(parameters, UpdateScope::Parameter, 8, kBufferBytes)) {
    for (const StateWindow& window : unit) EXPECT_TRUE(window.is_whole);
  }
}

// Sums over parts are asked for all parameters, so that ranks need not agree on anything else.
TEST(OffloadedOptimizer, AsksForTheSumsOfItsParameters) {
  Registries registries;
  add_builtins(registries);
  const ScratchFolder root;
  const OffloadChoice lamb{"LAMB"};
  auto parameters = offload_parameters(), wanted = offload_parameters();
  OffloadedOptimizer own(offload_config(lamb), registries.optimizers.at("LAMB").make, parameters,
                         plan_for(registries, lamb, root, Kept::InFile));
  const OptimizerPtr reference = registries.optimizers.at("LAMB").make(offload_config(lamb), wanted);
  StepInputs inputs = offload_inputs(0);
  int64_t calls = 0;
  inputs.sum_over_parts = [&](const at::Tensor& numbers) {
    ++calls;
    EXPECT_EQ(numbers.size(1), 4);
    return numbers * 3;  // of parts that are alike
  };
  give_gradients(parameters, 0);
  give_gradients(wanted, 0);
  own.step(inputs);
  EXPECT_GT(calls, 1);
  reference->step(inputs);
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(at::equal(parameters[i].value, wanted[i].value)) << wanted[i].name;
}

TEST(OffloadedAverage, HasTheBitsOfTheOneInMemory) {
  for (const Kept kept : {Kept::InFile, Kept::Staged}) {
    Registries registries;
    add_builtins(registries);
    const ScratchFolder root;
    const config::OptimizerConfig config = offload_config({"Adam"}).optimizer;
    const auto parameters = offload_parameters(), wanted = offload_parameters();
    OffloadedAverage own(config, parameters, plan_for(registries, {"Adam"}, root, kept));
    HeldAverage reference(config, wanted);
    expect_equal_values(values_of(own.states()), values_of(reference.states()));
    for (int step = 0; step < 4; ++step) {
      for (const auto& list : {parameters, wanted}) {
        for (const OptimizerParameter& parameter : list) parameter.value.mul_(0.5 + step);
      }
      own.update(offload_inputs(step).found_inf);
      reference.update(offload_inputs(step).found_inf);
    }
    expect_equal_values(values_of(own.states()), values_of(reference.states()));
    own.swap();
    reference.swap();
    expect_equal_values(values_of(own.states()), values_of(reference.states()));
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(at::equal(parameters[i].value, wanted[i].value)) << wanted[i].name;
    own.restart();
    reference.restart();
    expect_equal_values(values_of(own.states()), values_of(reference.states()));
  }
}

TEST(Offload, WantsAFolderOnACpuAndAnOptimizerThatIsUpdatedInParts) {
  config::RunConfig config = offload_config({"Adam"});
  config.backend.offload = {"optimizer"};
  const auto text_of = [](auto&& work) -> std::string {
    try {
      work();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_THAT(
      text_of([&] { check_offload(config, at::kCPU); }),
      ::testing::HasSubstr("[offload] a run on a CPU needs a folder for it: offload=optimizer, offload_path=. Name a folder"));
  check_offload(config, at::kCUDA);
  EXPECT_THAT(text_of([&] { Offload(config, at::kCPU).optimizer(adam, UpdateScope::Model, 2, {}); }),
              ::testing::HasSubstr("optimizer=Adam, offload=optimizer. Give its OptimizerEntry a scope"));
}

}  // namespace
}  // namespace welkin::train
