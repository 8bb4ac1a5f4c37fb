// SPDX-License-Identifier: Apache-2.0
// Training over several steps against the chain of calls written out by hand, against differences, and noise against its moments.
#include "train/rollout/training_rollout.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "core/error.h"
#include "core/philox.h"
#include "gradient_check.h"
#include "train/rollout/curriculum.h"
#include "train/rollout/input_noise.h"

namespace welkin::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr int64_t kSamples = 2, kSteps = 3;

// Input: an older state (sun, u, v), then the newest one; target: v, u, rain. Rain is predicted and not fed back.
data::SampleSpec weather() {
  data::SampleSpec spec;
  spec.input = {{"sun[-1]", "u[-1]", "v[-1]", "sun", "u", "v"}, {}, {6, 4, 4}};
  spec.target = {{"v", "u", "rain"}, {}, {3, 4, 4}};
  spec.geometry = data::Geometry::Sphere;
  spec.newest_input_channel = 3;
  spec.earlier_target = {5, 4, -1};
  spec.known_input = {3};
  return spec;
}

config::RunConfig steps(int64_t number) {
  config::RunConfig config;
  config.data.history = 2;
  config.loss.multistep = number;
  config.loop.seed = 7;
  return config;
}

at::Tensor input_of(int64_t number) { return tests::test_values({kSamples, 6 + (number - 1), 4, 4}, 1); }
at::Tensor target_of(int64_t number) { return tests::test_values({kSamples, 3 * number, 4, 4}, 2); }

model::ForwardContext context() {
  return {.seed = 7, .step = at::full({}, 5, at::kLong), .sample = at::arange(kSamples, at::kLong)};
}

at::Tensor predict(const at::Tensor& weight, const at::Tensor& input) {
  return at::tanh(at::einsum("oc,bchw->bohw", {weight, input}));
}

at::Tensor mean_square(const at::Tensor& prediction, const at::Tensor& target) {
  return (prediction - target).square().flatten(1).mean(1);
}

StepOfModel step_with(const at::Tensor& weight) {
  return {.forward = [weight](const at::Tensor& input, const model::ForwardContext&) { return predict(weight, input); },
          .losses = mean_square};
}

TrainingRollout rollout_of(const config::RunConfig& config, const data::SampleSpec& spec = weather()) {
  return {spec, config, {}, at::kCPU};
}

at::Tensor losses(const config::RunConfig& config, const at::Tensor& weight, const data::SampleSpec& spec = weather()) {
  return rollout_of(config, spec).losses(input_of(kSteps), target_of(kSteps), context(), step_with(weight), {});
}

// What the newest input becomes: sun of the next time, then u and v as predicted.
at::Tensor by_hand(const at::Tensor& weight, bool only_last) {
  const at::Tensor all = input_of(kSteps), target = target_of(kSteps);
  at::Tensor input = all.narrow(1, 0, 6), sum;
  for (int64_t k = 0; k < kSteps; ++k) {
    at::Tensor prediction = predict(only_last && k < kSteps - 1 ? weight.detach() : weight, input);
    const at::Tensor losses = mean_square(prediction, target.narrow(1, 3 * k, 3));
    if (!only_last) sum = k == 0 ? losses : sum + losses;
    if (only_last) sum = losses;
    if (k == kSteps - 1) break;
    const at::Tensor u = prediction.narrow(1, 1, 1), v = prediction.narrow(1, 0, 1);
    input = at::cat({input.narrow(1, 3, 3), all.narrow(1, 6 + k, 1), u, v}, 1);
  }
  return only_last ? sum : sum / kSteps;
}

TEST(TrainingRollout, IsTheChainWrittenOut) {
  for (const bool only_last : {false, true}) {
    config::RunConfig config = steps(kSteps);
    if (only_last) config.loss.multistep_gradient = config::MultistepGradient::Last;
    const at::Tensor weight = tests::test_values({3, 6}, 3).requires_grad_();
    const at::Tensor got = losses(config, weight);
    got.sum().backward();
    const at::Tensor same = weight.detach().clone().requires_grad_();
    const at::Tensor wanted = by_hand(same, only_last);
    wanted.sum().backward();
    EXPECT_TRUE(tests::close(got, wanted, at::kDouble, 64)) << only_last;
    EXPECT_TRUE(tests::close(weight.grad(), same.grad(), at::kDouble, 512)) << only_last;
  }
}

TEST(TrainingRollout, GradientIsRightThroughAllSteps) {
  EXPECT_TRUE(tests::gradcheck([](const std::vector<at::Tensor>& in) { return losses(steps(kSteps), in[0]); },
                               {tests::test_values({3, 6}, 3)}));
}

TEST(TrainingRollout, OfOneStepIsTheLossItself) {
  const at::Tensor weight = tests::test_values({3, 6}, 3);
  const TrainingRollout one = rollout_of(steps(1));
  const at::Tensor got = one.losses(input_of(1), target_of(1), context(), step_with(weight), {});
  EXPECT_TRUE(at::equal(got, mean_square(predict(weight, input_of(1)), target_of(1))));
}

TEST(TrainingRollout, ShowsTheFirstPrediction) {
  const at::Tensor weight = tests::test_values({3, 6}, 3);
  const TrainingRollout rollout = rollout_of(steps(kSteps));
  std::vector<at::Tensor> seen;
  rollout.losses(input_of(kSteps), target_of(kSteps), context(), step_with(weight),
                 [&](const at::Tensor& prediction) { seen.push_back(prediction); });
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_TRUE(at::equal(seen[0], predict(weight, rollout.first_input(input_of(kSteps)))));
  EXPECT_EQ(rollout.steps_of(target_of(kSteps)), kSteps);
}

at::Tensor mean_absolute_of(const at::Tensor& prediction, const at::Tensor& target) {
  return (prediction - target).abs().flatten(1).mean(1);
}

// A model whose output depends on the seed as one with dropout does; the score of its members written out.
TEST(TrainingRollout, MembersAreScoredByTheFairCrps) {
  config::RunConfig config = steps(1);
  config.loss.ensemble_members = 3;
  const at::Tensor weight = tests::test_values({3, 6}, 3).requires_grad_();
  std::vector<at::Tensor> members;
  std::vector<uint64_t> seeds;
  StepOfModel step{.forward =
                       [&](const at::Tensor& input, const model::ForwardContext& own) {
                         seeds.push_back(own.seed);
                         members.push_back(predict(weight, input) * (1.0 + 0.3 * static_cast<double>(seeds.size())));
                         return members.back();
                       },
                   .losses = mean_absolute_of};
  const at::Tensor target = target_of(1);
  const at::Tensor got = rollout_of(config).losses(input_of(1), target, context(), step, {});
  ASSERT_EQ(members.size(), 3U);
  EXPECT_EQ(seeds[0], 7U) << "that of a run without members";
  EXPECT_NE(seeds[1], seeds[0]);
  EXPECT_NE(seeds[2], seeds[1]);
  at::Tensor wanted = at::zeros({kSamples}, at::kDouble);
  for (const at::Tensor& one : members) {
    wanted = wanted + mean_absolute_of(one, target) / 3;
    for (const at::Tensor& other : members) wanted = wanted - mean_absolute_of(one, other) / (2.0 * 3 * 2);
  }
  EXPECT_TRUE(tests::close(got, wanted, at::kDouble, 64));
  got.sum().backward();
  EXPECT_TRUE(weight.grad().defined());
  const at::NoGradGuard validation;
  members.clear();
  rollout_of(config).losses(input_of(1), target, context(), step, {});
  EXPECT_EQ(members.size(), 1U) << "validation makes one prediction";
}

TEST(TrainingRollout, MembersHaveNoValueWhereTheTargetHasNone) {
  config::RunConfig config = steps(1);
  config.loss.ensemble_members = 2;
  at::Tensor target = target_of(1);
  target.select(1, 0).fill_(std::numeric_limits<double>::quiet_NaN());
  int64_t pairs = 0;
  StepOfModel step = step_with(tests::test_values({3, 6}, 3));
  step.losses = [&](const at::Tensor& prediction, const at::Tensor& of_lead) {
    EXPECT_TRUE(of_lead.select(1, 0).isnan().all().item<bool>());
    EXPECT_FALSE(of_lead.narrow(1, 1, 2).isnan().any().item<bool>());
    ++pairs;
    return (prediction - of_lead).abs().nan_to_num().flatten(1).mean(1);
  };
  rollout_of(config).losses(input_of(1), target, context(), step, {});
  EXPECT_EQ(pairs, 3) << "two members and one pair";
}

// A step without a mask of its own would drop the same elements again.
TEST(TrainingRollout, EachStepHasItsOwnSeed) {
  std::vector<uint64_t> seeds;
  StepOfModel step = step_with(tests::test_values({3, 6}, 3));
  step.forward = [&, inner = step.forward](const at::Tensor& input, const model::ForwardContext& own) {
    seeds.push_back(own.seed);
    return inner(input, own);
  };
  rollout_of(steps(kSteps)).losses(input_of(kSteps), target_of(kSteps), context(), step, {});
  ASSERT_EQ(seeds.size(), 3U);
  EXPECT_EQ(seeds[0], 7U) << "that of a run of one step";
  EXPECT_NE(seeds[1], seeds[0]);
  EXPECT_NE(seeds[2], seeds[1]);
}

// Points without a value get what the data have there: 9 in u, 10 in v.
TEST(TrainingRollout, PointsWithoutAValueAreFilled) {
  config::RunConfig config = steps(2);
  config.data.nan_policy = config::NanPolicy::Hole;
  data::SampleSpec spec = weather();
  spec.input_fill = {0, 0, 0, 8, 9, 10};
  at::Tensor target = target_of(2);
  target.select(1, 0).narrow(-1, 0, 1).fill_(std::numeric_limits<double>::quiet_NaN());
  std::vector<at::Tensor> inputs;
  StepOfModel step = step_with(tests::test_values({3, 6}, 3));
  step.forward = [&](const at::Tensor& input, const model::ForwardContext&) {
    inputs.push_back(input);
    return at::full({kSamples, 3, 4, 4}, 0.5, at::kDouble);
  };
  rollout_of(config, spec).losses(input_of(2), target, context(), step, {});
  ASSERT_EQ(inputs.size(), 2U);
  const at::Tensor v = inputs[1].select(1, 5), u = inputs[1].select(1, 4);
  EXPECT_EQ(v.narrow(-1, 0, 1).min().item<double>(), 10);
  EXPECT_EQ(v.narrow(-1, 0, 1).max().item<double>(), 10);
  EXPECT_EQ(v.narrow(-1, 1, 3).max().item<double>(), 0.5);
  EXPECT_EQ(u.max().item<double>(), 0.5);
}

TEST(TrainingRollout, RefusesWhatCannotBeFedBack) {
  data::SampleSpec spec = weather();
  spec.known_input = {};
  EXPECT_THAT([&] { rollout_of(steps(2), spec); },
              ThrowsMessage<ConfigError>(HasSubstr("some of its channels are not predicted: channels=sun")));
  spec.earlier_target = {-1, -1, -1};
  EXPECT_THAT([&] { rollout_of(steps(2), spec); }, ThrowsMessage<ConfigError>(HasSubstr("the input is no earlier state")));
  spec = weather();
  spec.input_log = {1, 4};
  EXPECT_THAT([&] { rollout_of(steps(2), spec); }, ThrowsMessage<ConfigError>(HasSubstr("transformed differently: channel=u")));
  rollout_of(steps(1), spec);
  config::RunConfig far = steps(2);
  far.data.dt = 2;
  EXPECT_THAT([&] { rollout_of(far); }, ThrowsMessage<ConfigError>(HasSubstr("history=2, dt=2")));
}

at::Tensor noisy_input(const config::RunConfig& config, std::optional<data::Region> region, int64_t first, int64_t count,
                       const data::SampleSpec& spec = weather()) {
  const TrainingRollout rollout(spec, config, region, at::kCPU);
  at::Tensor seen;
  StepOfModel step{.forward =
                       [&](const at::Tensor& input, const model::ForwardContext&) {
                         seen = input;
                         return input.narrow(1, 0, 3);
                       },
                   .losses = mean_square};
  at::Tensor input = input_of(1).narrow(0, first, count), target = target_of(1).narrow(0, first, count);
  if (region) {
    input = input.narrow(2, region->begin[0], region->extent[0]);
    target = target.narrow(2, region->begin[0], region->extent[0]);
  }
  model::ForwardContext own = context();
  own.sample = own.sample.narrow(0, first, count);
  rollout.losses(input, target, own, step, {});
  return seen;
}

// However samples and their rows are shared out.
TEST(InputNoise, IsTheSameInEveryLayout) {
  config::RunConfig config = steps(1);
  config.loss.input_noise = 0.1;
  const at::Tensor whole = noisy_input(config, {}, 0, kSamples);
  EXPECT_TRUE(at::equal(noisy_input(config, {}, 1, 1), whole.narrow(0, 1, 1)));
  EXPECT_TRUE(
      at::equal(noisy_input(config, data::Region{.begin = {1, 0, 0}, .extent = {2, 4, 1}}, 0, kSamples), whole.narrow(2, 1, 2)));
  const at::Tensor noise = whole - input_of(1);
  EXPECT_EQ(noise.narrow(1, 0, 4).abs().max().item<double>(), 0) << "what is not predicted stays";
  EXPECT_GT(noise.narrow(1, 4, 2).abs().max().item<double>(), 0);
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(at::equal(noisy_input(config, {}, 0, kSamples), input_of(1))) << "only where something is learnt";
}

TEST(InputNoise, IsInStandardDeviationsOfEachChannel) {
  config::RunConfig config = steps(1);
  config.loss.input_noise = 0.1;
  data::SampleSpec spec = weather();
  const at::Tensor truth = input_of(1), noise = noisy_input(config, {}, 0, kSamples, spec) - truth;
  spec.input_spread = {1, 5, 7, 1, 8, 0.25};
  const at::Tensor spread = noisy_input(config, {}, 0, kSamples, spec) - truth;
  const double scale = truth.abs().max().item<double>() + spread.abs().max().item<double>();
  for (int64_t channel = 0; channel < 6; ++channel) {
    const at::Tensor wanted = noise.select(1, channel) * spec.input_spread[static_cast<size_t>(channel)];
    const at::Tensor error = (spread.select(1, channel) - wanted).abs().max();
    EXPECT_TRUE(tests::rounds_to(error.item<double>(), 0, 8 * scale, kFp32, 4)) << channel;
  }
  EXPECT_GT(spread.select(1, 4).abs().max().item<double>(), 0);
}

TEST(InputNoise, IsStandardNormal) {
  constexpr int64_t kNumbers = 40000;
  const NoiseKey key{.seed = 3, .step = at::full({}, 9, at::kLong), .sample = at::arange(2, at::kLong)};
  const at::Tensor noise = standard_normals(key, {kNumbers}).to(at::kDouble);
  constexpr tests::Stated kSpread{0.02, "four standard errors of the mean of 40000 numbers"};
  constexpr tests::Stated kSpreadOfSquares{0.03, "four standard errors of the mean of 40000 squares"};
  for (int64_t b = 0; b < 2; ++b) {
    EXPECT_TRUE(tests::within(noise[b].mean().item<double>(), 0.0, kSpread));
    EXPECT_TRUE(tests::within(noise[b].square().mean().item<double>(), 1.0, kSpreadOfSquares));
  }
  EXPECT_TRUE(tests::within(noise[0].mul(noise[1]).mean().item<double>(), 0.0, kSpread)) << "samples are independent";
  const uint64_t counter = (uint64_t{9} << 32) ^ 1;
  const PhiloxBlock words = philox(stream_key(3, "input noise"), counter, 0);
  const auto pair = normal_pair(words[2], words[3]);
  EXPECT_TRUE(tests::close(noise[1][2].item<double>(), pair[0], kFp32, 4)) << "numbers of core/philox.h";
}

TEST(Curriculum, GoesByEpochsOrSteps) {
  config::LossConfig loss;
  loss.multistep = std::vector<int64_t>{1, 2, 4};
  loss.multistep_epochs = {3, 2};
  std::vector<int64_t> by_epoch, by_step;
  for (int64_t epoch = 0; epoch < 7; ++epoch) by_epoch.push_back(steps_at(loss, epoch, 1000));
  EXPECT_THAT(by_epoch, ElementsAre(1, 1, 1, 2, 2, 4, 4));
  loss.multistep_epochs = {}, loss.multistep_iters = {2, 1};
  for (int64_t step = 0; step < 5; ++step) by_step.push_back(steps_at(loss, 0, step));
  EXPECT_THAT(by_step, ElementsAre(1, 1, 2, 4, 4));
  EXPECT_EQ(steps_at({}, 5, 100), 1);
}

}  // namespace
}  // namespace welkin::train
