// SPDX-License-Identifier: Apache-2.0
#include "train/optim/optimizer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "ops/base/instruction_set.h"
#include "tolerance.h"
#include "train/device/memory_limit.h"

namespace welkin::train {
namespace {

at::Tensor number(double value) { return at::full({}, value, at::kDouble); }
at::Tensor verdict(bool skip) { return at::full({}, skip ? 1.0 : 0.0, at::kFloat); }

at::Tensor state_named(Optimizer& optimizer, const std::string& name) {
  for (const NamedState& state : optimizer.states()) {
    if (state.name == name) return state.value;
  }
  throw InternalError("no such state: " + name);
}

config::RunConfig adam_config(double beta2) {
  config::RunConfig config;
  config.optimizer.betas = {0.9, beta2};
  return config;
}

void set_gradient(const at::Tensor& parameter, const at::Tensor& gradient) { parameter.mutable_grad() = gradient.clone(); }

// The rule in plain double arithmetic; reference cases of kind `adam` compare with torch's own numbers.
TEST(Adam, FollowsItsRuleOverManySteps) {
  const double betas[] = {0.9, 0.95}, eps = 1e-8;
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    const at::Tensor parameter = at::full({1}, 0.5, dtype);
    const OptimizerPtr optimizer = adam(adam_config(betas[1]), {{"p", parameter, true}});
    double p = 0.5, m = 0, v = 0;
    for (int step = 1; step <= 12; ++step) {
      const double gradient = std::ldexp(step % 3 - 1, -step), rate = 0.01 / step;  // exact in float
      set_gradient(parameter, at::full({1}, gradient, dtype));
      optimizer->step({.rate = number(rate), .found_inf = verdict(false)});
      m = betas[0] * m + (1 - betas[0]) * gradient;
      v = betas[1] * v + (1 - betas[1]) * gradient * gradient;
      p -= rate / (1 - std::pow(betas[0], step)) * m / (std::sqrt(v) / std::sqrt(1 - std::pow(betas[1], step)) + eps);
      EXPECT_TRUE(tests::close(parameter.item<double>(), p, tests::format_of(dtype), 4 * step)) << dtype << " step " << step;
    }
  }
}

// As cuDNN gives it for a 1 x 1 kernel that lies channels-last; autograd takes it as it is.
TEST(Adam, StridesOfSingleElementsDoNotMatter) {
  const auto stepped = [](at::IntArrayRef strides) {
    const at::Tensor parameter = at::full({2, 3, 1, 1}, 0.5, at::kFloat);
    const OptimizerPtr optimizer = adam(adam_config(0.95), {{"p", parameter, true}});
    parameter.mutable_grad() = at::linspace(-1, 1, 6, at::kFloat).as_strided({2, 3, 1, 1}, strides);
    optimizer->step({.rate = number(0.01), .found_inf = verdict(false)});
    return parameter;
  };
  EXPECT_TRUE(at::equal(stepped({3, 1, 3, 3}), stepped({3, 1, 1, 1})));
  EXPECT_THROW(stepped({1, 2, 1, 1}), InternalError) << "another order";
}

TEST(Adam, EntriesWithoutGradientStayBitEqual) {
  const at::Tensor parameter = at::linspace(-1, 1, 7);
  const at::Tensor before = parameter.clone();
  const OptimizerPtr optimizer = adam(adam_config(0.999), {{"p", parameter, true}});
  set_gradient(parameter, at::zeros({7}));
  optimizer->step({.rate = number(0.1), .found_inf = verdict(false)});
  EXPECT_TRUE(at::equal(parameter, before));
}

// The formulas in double, beside the kernels.
TEST(AdamW, DecaysApartFromTheGradientAndOnlyWhereAsked) {
  config::RunConfig config = adam_config(0.999);
  config.optimizer.weight_decay = 0.1;
  const at::Tensor decayed = at::ones({4}, at::kDouble), spared = at::ones({4}, at::kDouble);
  const OptimizerPtr optimizer = adamw(config, {{"w", decayed, true}, {"b", spared, false}});
  for (const at::Tensor& parameter : {decayed, spared}) set_gradient(parameter, at::full({4}, 0.5, at::kDouble));
  optimizer->step({.rate = number(0.01), .found_inf = verdict(false)});
  const double move = 0.01 * 0.5 / (0.5 + 1e-8);
  EXPECT_TRUE(tests::close(spared[0].item<double>(), 1 - move, kFp64, 8));
  EXPECT_TRUE(tests::close(decayed[0].item<double>(), 1 * (1 - 0.01 * 0.1) - move, kFp64, 8));
}

TEST(Adam, AddsTheDecayToTheGradient) {
  config::RunConfig config = adam_config(0.999);
  config.optimizer.weight_decay = 0.1;
  const at::Tensor parameter = at::full({2}, 2.0, at::kDouble);
  const OptimizerPtr optimizer = adam(config, {{"w", parameter, true}});
  set_gradient(parameter, at::full({2}, 0.5, at::kDouble));
  optimizer->step({.rate = number(0.01), .found_inf = verdict(false)});
  EXPECT_TRUE(tests::close(state_named(*optimizer, "exp_avg.w")[0].item<double>(), 0.1 * (0.5 + 0.1 * 2.0), kFp64, 8));
}

TEST(Sgd, KeepsAVelocityFromTheFirstStepOn) {
  config::RunConfig config;
  config.optimizer.momentum = 0.5;
  const at::Tensor parameter = at::zeros({3}, at::kDouble);
  const OptimizerPtr optimizer = sgd(config, {{"w", parameter, true}});
  for (int step = 0; step < 3; ++step) {
    set_gradient(parameter, at::ones({3}, at::kDouble));
    optimizer->step({.rate = number(0.1), .found_inf = verdict(false)});
  }
  EXPECT_TRUE(tests::close(parameter[0].item<double>(), -0.1 * (1 + 1.5 + 1.75), kFp64, 8));
}

TEST(Optimizers, LeaveEverythingAloneWhenTheStepIsSkipped) {
  for (const auto& make : {adam, adamw, sgd}) {
    config::RunConfig config = adam_config(0.999);
    config.optimizer.weight_decay = 0.1;
    const at::Tensor parameter = at::linspace(-1, 1, 5);
    const OptimizerPtr optimizer = make(config, {{"w", parameter, true}});
    set_gradient(parameter, at::ones({5}));
    optimizer->step({.rate = number(0.1), .found_inf = verdict(false)});
    const at::Tensor before = parameter.clone();
    std::vector<at::Tensor> states;
    for (const NamedState& state : optimizer->states()) states.push_back(state.value.clone());
    set_gradient(parameter, at::full({5}, NAN));
    optimizer->step({.rate = number(0.1), .found_inf = verdict(true)});
    EXPECT_TRUE(at::equal(parameter, before));
    const auto after = optimizer->states();
    for (size_t i = 0; i < states.size(); ++i) EXPECT_TRUE(at::equal(after[i].value, states[i])) << after[i].name;
  }
}

// Our pass over float32 against torch's kernels in double: odd sizes, more than one piece, decay on and off.
TEST(Optimizers, OfFloatsEqualThoseOfDoublesOnEverySet) {
  const ops::InstructionSet before = ops::instruction_set();
  for (const auto set : {ops::InstructionSet::Portable, ops::InstructionSet::Avx2, ops::InstructionSet::Avx512}) {
    if (!ops::is_supported(set)) continue;
    ops::set_instruction_set(set);
    for (const auto& make : {adam, adamw, sgd}) {
      config::RunConfig config = adam_config(0.95);
      config.optimizer.weight_decay = 0.05;
      std::vector<OptimizerParameter> single, wide;
      for (const int64_t size : {1, 7, 33, 40001}) {
        const at::Tensor start = at::linspace(-1, 1, size, at::kFloat);
        single.push_back({cat("p", size), start.clone(), size == 33});
        wide.push_back({single.back().name, start.to(at::kDouble), single.back().decays});
      }
      const OptimizerPtr own = make(config, single), reference = make(config, wide);
      for (int step = 1; step <= 3; ++step) {
        // The reference: nothing to scale, gradients that were scaled before, its own scaling.
        const at::Tensor scale = step == 1 ? at::Tensor() : at::full({}, 0.3, at::kFloat);
        for (size_t i = 0; i < single.size(); ++i) {
          const at::Tensor gradient = at::linspace(-2, step, single[i].value.numel(), at::kFloat).div_(step);
          set_gradient(single[i].value, gradient);
          set_gradient(wide[i].value, step == 2 ? gradient.to(at::kDouble) * scale : gradient.to(at::kDouble));
        }
        own->step({.rate = number(0.01), .found_inf = verdict(false), .gradient_scale = scale});
        reference->step({.rate = number(0.01), .found_inf = verdict(false), .gradient_scale = step == 3 ? scale : at::Tensor()});
      }
      for (size_t i = 0; i < single.size(); ++i) EXPECT_TRUE(tests::close(single[i].value, wide[i].value, at::kFloat, 16)) << i;
      const auto states = own->states(), wanted = reference->states();
      for (size_t i = 0; i < states.size(); ++i) {
        EXPECT_TRUE(tests::close(states[i].value, wanted[i].value, at::kFloat, 16)) << states[i].name;
      }
    }
  }
  ops::set_instruction_set(before);
}

TEST(Optimizers, FollowTheStridesOfTheirParameters) {
  const at::Tensor rows = at::linspace(0, 1, 12).view({3, 4}).clone();
  const at::Tensor columns = rows.t().contiguous().t();  // the same values in another order of memory
  for (const at::Tensor& parameter : {rows, columns}) {
    const OptimizerPtr optimizer = adam(adam_config(0.999), {{"w", parameter, true}});
    EXPECT_EQ(state_named(*optimizer, "exp_avg.w").strides(), parameter.strides());
    parameter.mutable_grad() = (parameter * 2).detach();
    ASSERT_EQ(parameter.grad().strides(), parameter.strides());
    optimizer->step({.rate = number(0.1), .found_inf = verdict(false)});
  }
  EXPECT_TRUE(at::equal(rows, columns));
}

// torch's kernels would copy weights, gradients and states whose dims are permuted, in every step.
TEST(Optimizers, CopyNoTensorWhateverItsStrides) {
  constexpr int64_t kElements = 1 << 18, kSmall = 1 << 16;
  for (const auto& make : {adam, adamw, sgd}) {
    const at::Tensor parameter = at::ones({512, kElements / 512}).t();
    const OptimizerPtr optimizer = make(adam_config(0.999), {{"w", parameter, true}});
    parameter.mutable_grad() = at::ones({512, kElements / 512}).t();
    const StepInputs inputs{.rate = number(0.1), .found_inf = verdict(false)};
    limit_cpu_memory(int64_t{1} << 40);
    limit_cpu_memory(cpu_memory_allocated() + kSmall);
    EXPECT_NO_THROW(optimizer->step(inputs));
    limit_cpu_memory(0);
    EXPECT_LT(parameter.max().item<float>(), 1);
  }
}

TEST(Optimizers, RefuseAGradientOfOtherStrides) {
  const at::Tensor parameter = at::ones({3, 4});
  const OptimizerPtr optimizer = adam(adam_config(0.999), {{"w", parameter, true}});
  parameter.mutable_grad() = at::ones({4, 3}).t();
  EXPECT_THROW(optimizer->step({.rate = number(0.1), .found_inf = verdict(false)}), InternalError);
}

}  // namespace
}  // namespace welkin::train
