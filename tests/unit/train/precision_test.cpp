// SPDX-License-Identifier: Apache-2.0
#include "train/precision.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "golden_folder.h"
#include "ops/autocast.h"
#include "tolerance.h"
#include "train/gradients.h"

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
  const at::Tensor found_inf = scaler.unscale(gradients);
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
  EXPECT_TRUE(scaler.exhausted().item<bool>());
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
  const GradientVerdict verdict = finish_gradients(gradients, at::full({}, 1.0), scaler, 1.0);
  EXPECT_FLOAT_EQ(verdict.norm.item<float>(), std::sqrt(50.0f));
  const double clipped = global_norm(gradients).item<double>();
  EXPECT_TRUE(tests::close(clipped, std::sqrt(50.0) / (std::sqrt(50.0) + 1e-6), kFp32, 8));  // the 1e-6 is torch's
  finish_gradients(gradients, at::full({}, 1.0), scaler, 2.0);                               // already below
  EXPECT_EQ(global_norm(gradients).item<double>(), clipped);
}

TEST(Gradients, AreUnscaledBeforeTheyAreClipped) {
  const std::vector<at::Tensor> gradients = {at::full({1}, 16.0)};
  const LossScaler scaler(fp16(8, 10), at::kCPU);
  const GradientVerdict verdict = finish_gradients(gradients, at::full({}, 1.0), scaler, 1.5);
  EXPECT_FLOAT_EQ(verdict.norm.item<float>(), 2.0f);
  EXPECT_TRUE(tests::close(gradients[0].item<double>(), 2 * 1.5 / (2 + 1e-6), kFp32, 8));
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
    const GradientVerdict verdict = finish_gradients({at::full({2}, c.gradient)}, at::full({}, c.loss), scaler, 0);
    EXPECT_EQ(verdict.found_inf.item<float>() != 0, c.skips) << c.name;
    EXPECT_EQ(verdict.nonfinite.item<float>() != 0, c.is_event) << c.name;
  }
}

}  // namespace
}  // namespace welkin::train
