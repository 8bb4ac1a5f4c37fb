// SPDX-License-Identifier: Apache-2.0
#include "train/optimizer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "golden_folder.h"
#include "train/reference/stored_tensors.h"

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

void expect_adam(const reference::StoredTensors& golden, int k, bool is_double) {
  const std::string prefix = "adam" + std::to_string(k) + ".";
  const std::string suffix = is_double ? "_f64" : "_f32";
  const auto dtype = is_double ? at::kDouble : at::kFloat;
  const at::Tensor parameter = golden.get("param0").to(dtype).clone();
  const at::Tensor gradients = golden.get("grads").to(dtype);
  const at::Tensor rates = golden.get(prefix + "lr");
  const at::Tensor wanted = golden.get(prefix + "params_f64");
  const OptimizerPtr optimizer = adam(adam_config(k == 0 ? 0.95 : 0.999), {{"p", parameter, true}});
  for (int64_t step = 0; step < gradients.size(0); ++step) {
    set_gradient(parameter, gradients[step]);
    optimizer->step({.rate = rates[step], .found_inf = verdict(false)});
    const double rate = rates.max().item<double>();
    const at::Tensor bound =
        is_double ? 1e-13 * (wanted[step].abs() + 12 * rate) : 16 * std::ldexp(1.0, -24) * (wanted[step].abs() + 12 * rate);
    EXPECT_TRUE(((parameter.to(at::kDouble) - wanted[step]).abs() <= bound).all().item<bool>())
        << prefix << suffix << " step " << step;
  }
  for (const char* moment : {"exp_avg", "exp_avg_sq"}) {
    const at::Tensor got = state_named(*optimizer, std::string(moment) + ".p").to(at::kDouble);
    const at::Tensor reference = golden.get(prefix + moment + suffix).to(at::kDouble);
    const double tolerance = is_double ? 1e-13 : 1e-6;
    EXPECT_TRUE(((got - reference).abs() <= tolerance * reference.abs() + 1e-300).all().item<bool>())
        << prefix << moment << suffix;
  }
}

TEST(Adam, EqualsTheReferenceOverTwelveSteps) {
  const auto folder = golden_folder("adam_steps");
  WELKIN_NEED_GOLDEN(folder);
  const reference::StoredTensors golden(folder / "data.safetensors");
  for (const int k : {0, 1}) {
    for (const bool is_double : {false, true}) expect_adam(golden, k, is_double);
  }
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
  EXPECT_NEAR(spared[0].item<double>(), 1 - move, 1e-14);
  EXPECT_NEAR(decayed[0].item<double>(), 1 * (1 - 0.01 * 0.1) - move, 1e-14);
}

TEST(Adam, AddsTheDecayToTheGradient) {
  config::RunConfig config = adam_config(0.999);
  config.optimizer.weight_decay = 0.1;
  const at::Tensor parameter = at::full({2}, 2.0, at::kDouble);
  const OptimizerPtr optimizer = adam(config, {{"w", parameter, true}});
  set_gradient(parameter, at::full({2}, 0.5, at::kDouble));
  optimizer->step({.rate = number(0.01), .found_inf = verdict(false)});
  EXPECT_NEAR(state_named(*optimizer, "exp_avg.w")[0].item<double>(), 0.1 * (0.5 + 0.1 * 2.0), 1e-14);
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
  EXPECT_NEAR(parameter[0].item<double>(), -0.1 * (1 + 1.5 + 1.75), 1e-14);
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

TEST(Optimizers, RefuseAGradientOfOtherStrides) {
  const at::Tensor parameter = at::ones({3, 4});
  const OptimizerPtr optimizer = adam(adam_config(0.999), {{"w", parameter, true}});
  parameter.mutable_grad() = at::ones({4, 3}).t();
  EXPECT_THROW(optimizer->step({.rate = number(0.1), .found_inf = verdict(false)}), InternalError);
}

}  // namespace
}  // namespace welkin::train
