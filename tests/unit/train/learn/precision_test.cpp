// SPDX-License-Identifier: Apache-2.0
#include "train/learn/precision.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "golden_folder.h"
#include "ops/base/autocast.h"
#include "tolerance.h"
#include "train/learn/gradients.h"

namespace welkin::train {
namespace {

config::PrecisionConfig fp16(double scale, int64_t window, double minimum = 1.0) {
  config::PrecisionConfig config;
  config.amp_mode = config::AmpMode::Fp16;
  config.loss_scale = scale;
  config.loss_scale_window = window;
  config.loss_scale_min = minimum;
  return config;
}

double scale_of(const LossScaler& scaler) { return scaler.scale().item<double>(); }

// One step whose gradient is finite or not; returns whether it was taken.
bool scaler_step(LossScaler& scaler, bool overflow) {
  const std::vector<at::Tensor> gradients = {at::full({3}, overflow ? INFINITY : 1.0)};
  const at::Tensor found_inf = check_gradients(gradients, at::full({}, 1.0), scaler, /*clip_norm=*/0).overflow;
  scaler.update(found_inf);
  return found_inf.item<float>() == 0;
}

TEST(LossScaler, FollowsTheReferenceThroughEveryTransition) {
  const auto path = golden_folder("adam_steps") / "grad_scaler.json";
  WELKIN_NEED_GOLDEN(path);
  const auto golden = nlohmann::json::parse(read_file(path, 1 << 20));
  config::PrecisionConfig config = fp16(golden.at("init_scale"), golden.at("growth_interval"));
  config.loss_scale_factor = golden.at("growth_factor");
  LossScaler scaler(config, at::kCPU);
  for (const auto& step : golden.at("steps")) {
    EXPECT_EQ(scale_of(scaler), step.at("scale_used").get<double>());
    EXPECT_EQ(scaler_step(scaler, step.at("overflow")), step.at("step_taken").get<bool>());
    EXPECT_EQ(scale_of(scaler), step.at("scale_after").get<double>());
  }
}

TEST(LossScaler, NeverFallsBelowItsMinimum) {
  LossScaler scaler(fp16(8, 100, 2), at::kCPU);
  for (const double wanted : {4.0, 2.0, 2.0}) {
    EXPECT_FALSE(scaler_step(scaler, true));
    EXPECT_EQ(scale_of(scaler), wanted);
  }
  EXPECT_TRUE(scaler.at_minimum().item<bool>());
}

TEST(LossScaler, AnOverflowStartsTheWindowAnew) {
  LossScaler scaler(fp16(16, 2), at::kCPU);
  scaler_step(scaler, false);
  scaler_step(scaler, true);
  scaler_step(scaler, false);
  EXPECT_EQ(scale_of(scaler), 8);
  scaler_step(scaler, false);
  EXPECT_EQ(scale_of(scaler), 16);
}

TEST(LossScaler, IsTheIdentityWithoutFp16) {
  LossScaler scaler(config::PrecisionConfig{}, at::kCPU);
  const at::Tensor loss = at::full({}, 3.0);
  EXPECT_TRUE(scaler.scaled(loss).is_same(loss));
  EXPECT_TRUE(scaler_step(scaler, true));
  EXPECT_EQ(scale_of(scaler), 1);
}

TEST(Autocast, CastsInsideItsScopeOnly) {
  const at::Tensor a = at::ones({4, 4});
  {
    const ops::AutocastGuard scope(at::kCPU, autocast_dtype(config::AmpMode::Bf16));
    EXPECT_EQ(at::mm(a, a).scalar_type(), at::kBFloat16);
  }
  EXPECT_EQ(at::mm(a, a).scalar_type(), at::kFloat);
  const ops::AutocastGuard off(at::kCPU, autocast_dtype(config::AmpMode::None));
  EXPECT_EQ(at::mm(a, a).scalar_type(), at::kFloat);
}

TEST(Gradients, AreClippedByTheirCommonNorm) {
  const std::vector<at::Tensor> gradients = {at::full({2}, 3.0), at::full({2}, 4.0)};
  const LossScaler scaler(config::PrecisionConfig{}, at::kCPU);
  const GradientStatus verdict = check_gradients(gradients, at::full({}, 1.0), scaler, 1.0);
  EXPECT_FLOAT_EQ(verdict.norm.item<float>(), std::sqrt(50.0f));
  EXPECT_TRUE(tests::close(verdict.scale.item<double>(), 1 / (std::sqrt(50.0) + 1e-6), kFp32, 8));  // the 1e-6 is torch's
  EXPECT_EQ(check_gradients(gradients, at::full({}, 1.0), scaler, 8.0).scale.item<double>(), 1) << "already below";
  EXPECT_EQ(check_gradients(gradients, at::full({}, 1.0), scaler, 0).scale.item<double>(), 1) << "never";
  EXPECT_EQ(gradients[1][1].item<double>(), 4) << "they stay as they are";
}

TEST(Gradients, AreUnscaledBeforeTheyAreClipped) {
  const std::vector<at::Tensor> gradients = {at::full({1}, 16.0)};
  const LossScaler scaler(fp16(8, 10), at::kCPU);
  const GradientStatus verdict = check_gradients(gradients, at::full({}, 1.0), scaler, 1.5);
  EXPECT_FLOAT_EQ(verdict.norm.item<float>(), 2.0f);
  EXPECT_TRUE(tests::close(16 * verdict.scale.item<double>(), 2 * 1.5 / (2 + 1e-6), kFp32, 8));
}

// One Adam step on gradients of a scaled loss, clipped or not, against unscaling and clipping in double beforehand.
TEST(Gradients, AreScaledAndClippedWithinTheUpdate) {
  const at::Tensor start = at::linspace(-1, 1, 40001), gradient = at::linspace(-0.02, 0.05, 40001);
  const double norm = gradient.to(at::kDouble).norm().item<double>();
  config::RunConfig config;
  config.optimizer.betas = {0.9, 0.999};
  for (const double loss_scale : {1.0, 1024.0, 3000.0}) {
    for (const double clip : {0.0, 0.5, 1e6}) {
      const LossScaler scaler(loss_scale == 1 ? config::PrecisionConfig{} : fp16(loss_scale, 10), at::kCPU);
      const at::Tensor parameter = start.clone(), reference = start.to(at::kDouble);
      const OptimizerPtr optimizer = adam(config, {{"p", parameter, true}}), wide = adam(config, {{"p", reference, true}});
      ASSERT_TRUE(optimizer->takes_gradient_scale());
      parameter.mutable_grad() = gradient * loss_scale;
      const GradientStatus verdict = check_gradients({parameter.grad()}, at::full({}, 1.0), scaler, clip);
      EXPECT_TRUE(tests::close(verdict.norm.item<double>(), norm, kFp32, 16)) << loss_scale;
      const at::Tensor rate = at::full({}, 0.01, at::kDouble);
      optimizer->step({.rate = rate, .found_inf = verdict.found_inf, .gradient_scale = verdict.scale});
      reference.mutable_grad() = gradient.to(at::kDouble) * (clip > 0 ? std::min(1.0, clip / (norm + 1e-6)) : 1.0);
      wide->step({.rate = rate, .found_inf = at::zeros({})});
      EXPECT_TRUE(tests::close(parameter, reference, at::kFloat, 16)) << loss_scale << " clip " << clip;

      const at::Tensor before = parameter.clone();
      parameter.mutable_grad()[40000] = NAN;
      const GradientStatus bad = check_gradients({parameter.grad()}, at::full({}, 1.0), scaler, clip);
      EXPECT_EQ(bad.found_inf.item<float>(), 1);
      EXPECT_EQ(bad.overflow.item<float>(), scaler.enabled() ? 1 : 0);
      optimizer->step({.rate = rate, .found_inf = bad.found_inf, .gradient_scale = bad.scale});
      EXPECT_TRUE(at::equal(parameter, before));
    }
  }
}

struct VerdictCase {
  const char* name;
  config::PrecisionConfig precision;
  double loss, gradient;
  bool skips, is_event;
};

TEST(Gradients, VerdictTellsAnOverflowFromAnEvent) {
  const VerdictCase cases[] = {{"fp32 clean", {}, 1, 1, false, false},
                               {"fp32 bad gradient", {}, 1, NAN, true, true},
                               {"fp32 bad loss", {}, INFINITY, 1, true, true},
                               {"fp16 clean", fp16(8, 10), 1, 1, false, false},
                               {"fp16 overflow", fp16(8, 10), 1, INFINITY, true, false},
                               {"fp16 overflow at the smallest scale", fp16(1, 10), 1, INFINITY, true, true},
                               {"fp16 bad loss", fp16(8, 10), NAN, INFINITY, true, true}};
  for (const VerdictCase& c : cases) {
    const LossScaler scaler(c.precision, at::kCPU);
    const GradientStatus verdict = check_gradients({at::full({2}, c.gradient)}, at::full({}, c.loss), scaler, 0);
    EXPECT_EQ(verdict.found_inf.item<float>() != 0, c.skips) << c.name;
    EXPECT_EQ(verdict.nonfinite.item<float>() != 0, c.is_event) << c.name;
  }
}

}  // namespace
}  // namespace welkin::train
