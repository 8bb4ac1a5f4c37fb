// SPDX-License-Identifier: Apache-2.0
#include "train/optim/weight_average.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tolerance.h"

namespace welkin::train {
namespace {

at::Tensor skipping(bool skip) { return at::full({}, skip ? 1.0 : 0.0, at::kFloat); }

// The rule in double arithmetic, on both ways: float32 in one pass, double by aten's operators.
TEST(WeightAverage, FollowsItsRule) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const bool warmup : {true, false}) {
      config::OptimizerConfig config;
      config.ema_decay = 0.75;
      config.ema_warmup = warmup;
      const at::Tensor weight = at::full({3, 5}, 1.0, dtype);
      HeldAverage average(config, {{"w", weight, true}});
      double wanted = 1;
      int updates = 0;
      for (int step = 1; step <= 40; ++step) {
        weight.fill_(1.0 / step);
        const bool is_skipped = step % 4 == 0;
        average.update(skipping(is_skipped));
        if (is_skipped) continue;
        ++updates;
        const double decay = warmup ? std::min(0.75, (1.0 + updates) / (10.0 + updates)) : 0.75;
        wanted = decay * wanted + (1 - decay) / step;
      }
      const std::vector<NamedState> states = average.states();
      EXPECT_EQ(states.at(0).name, "updates");
      EXPECT_EQ(states.at(0).value.item<float>(), 30);
      EXPECT_TRUE(tests::close(states.at(1).value[1][2].item<double>(), wanted, tests::format_of(dtype), 40)) << dtype << warmup;
    }
  }
}

TEST(WeightAverage, SwapsBackAndForth) {
  config::OptimizerConfig config;
  config.ema_decay = 0.5;
  const at::Tensor weight = at::linspace(0, 1, 12).view({3, 4}).t();
  HeldAverage average(config, {{"w", weight, true}});
  const at::Tensor first = weight.clone();
  weight.mul_(3);
  const at::Tensor second = weight.clone();
  {
    const AveragedWeights guard(&average, [] {});
    EXPECT_TRUE(at::equal(weight, first));
  }
  int changes = 0;
  AveragedWeights averaged(&average, [&] { ++changes; });
  averaged.end();
  EXPECT_EQ(changes, 2);
  EXPECT_TRUE(at::equal(weight, second));
  EXPECT_TRUE(at::equal(average.states().at(1).value, first));
  average.restart();
  EXPECT_TRUE(at::equal(average.states().at(1).value, second));
}

}  // namespace
}  // namespace welkin::train
