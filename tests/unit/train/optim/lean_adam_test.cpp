// SPDX-License-Identifier: Apache-2.0
// Adam with averages of fewer bits: which weights have them, both ways of computing, and what training makes of it.
#include "train/optim/lean_adam.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <map>

#include "core/philox.h"
#include "ops/random/normal_stream.h"
#include "ops/random/philox_words.h"
#include "tolerance.h"

namespace welkin::train {
namespace {

config::RunConfig lean_config(const std::string& state) {
  config::RunConfig config;
  config.optimizer.betas = {0.9, 0.99};
  config.optimizer.weight_decay = 0.01;
  config.optimizer.optimizer_state = config::choice_named<config::OptimizerState>(state).value();
  return config;
}

at::Tensor normal_values(at::IntArrayRef shape, uint64_t stream) {
  at::Tensor values = at::zeros(shape, at::kFloat);
  ops::fill_normals(stream, 0, values.numel(), 1.0, values.mutable_data_ptr<float>());
  return values;
}

StepInputs inputs_with(double rate) { return {.rate = at::full({}, rate, at::kDouble), .found_inf = at::zeros({}, at::kFloat)}; }

TEST(LeanAdam, KeepsSmallAndUndecayedTensorsInFloat32) {
  const std::vector<OptimizerParameter> parameters{{"large.weight", normal_values({64, 64}, 1), true},
                                                   {"small.weight", normal_values({63, 65}, 2), true},
                                                   {"pos_embed", normal_values({64, 64}, 3), false}};
  std::map<std::string, at::ScalarType> types;
  for (const NamedState& state : adamw(lean_config("8bit"), parameters)->states()) types[state.name] = state.value.scalar_type();
  const std::map<std::string, at::ScalarType> wanted{{"steps", at::kFloat},
                                                     {"lean_steps", at::kFloat},
                                                     {"exp_avg.small.weight", at::kFloat},
                                                     {"exp_avg_sq.small.weight", at::kFloat},
                                                     {"exp_avg.pos_embed", at::kFloat},
                                                     {"exp_avg_sq.pos_embed", at::kFloat},
                                                     {"exp_avg_codes.large.weight", at::kByte},
                                                     {"exp_avg_scale.large.weight", at::kFloat},
                                                     {"exp_avg_sq_codes.large.weight", at::kByte},
                                                     {"exp_avg_sq_scale.large.weight", at::kFloat}};
  EXPECT_EQ(types, wanted);
  for (const NamedState& state : adam(lean_config("bf16"), parameters)->states()) {
    if (state.name == "exp_avg.large.weight") {
      EXPECT_EQ(state.value.scalar_type(), at::kBFloat16);
    }
  }
}

TEST(LeanAdam, WordsAreThoseOfTheStream) {
  const at::Tensor counter = at::full({}, int64_t{7}, at::kLong);
  const auto word = [](int64_t element) {
    return int64_t{philox(99, 7, static_cast<uint64_t>(element) / 4)[static_cast<size_t>(element % 4)]};
  };
  for (const int64_t first : {0, 1, 6, 1027}) {
    const at::Tensor words = ops::philox_words(99, counter, first, 11);
    for (int64_t i = 0; i < 11; ++i) EXPECT_EQ(words[i].item<int64_t>(), word(first + i)) << first << " " << i;
  }
  const at::Tensor elements = at::arange(0, 500, 7, at::kLong), words = ops::philox_words(99, counter, elements);
  for (int64_t i = 0; i < elements.numel(); ++i) EXPECT_EQ(words[i].item<int64_t>(), word(7 * i)) << i;
}

// What a rank has of a parameter of (24, 130): its piece from an odd element on; a half of the columns; of three blocks of rows a
// third; a piece of such a third.
struct LeanPart {
  const char* name;
  at::Tensor index;  // of its elements in the whole
  ops::PartRuns runs;
};

std::vector<LeanPart> lean_parts() {
  const at::Tensor whole = at::arange(24 * 130, at::kLong);
  const at::Tensor rows = whole.view({3, 8, 130}).narrow(1, 2, 2).flatten();
  return {{"piece", whole.narrow(0, 1001, 1507), {.begin = 1001}},
          {"columns", whole.view({24, 130}).narrow(1, 65, 65).flatten(), {.length = 65, .parts = 2, .part = 1}},
          {"rows of blocks", rows, {.length = 2 * 130, .parts = 4, .part = 1}},
          {"piece of these", rows.narrow(0, 131, 500), {.begin = 131, .length = 2 * 130, .parts = 4, .part = 1}}};
}

// In float32 and, by aten's operators, in double.
TEST(LeanAdam, PartsOfAParameterAreRoundedAsTheWhole) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const LeanPart& part : lean_parts()) {
      const at::Tensor whole = normal_values({2 * 24 * 130}, 1).narrow(0, 0, 24 * 130).to(dtype).clone(),
                       own = whole.index_select(0, part.index);
      std::vector<OptimizerParameter> of_part{
          {.name = "w.weight", .value = own, .is_part = true, .whole_elements = 2 * 24 * 130, .runs = part.runs}};
      const OptimizerPtr all = adamw(lean_config("bf16"), {{.name = "w.weight", .value = whole, .whole_elements = 2 * 24 * 130}}),
                         some = adamw(lean_config("bf16"), of_part);
      for (int step = 0; step < 3; ++step) {
        const at::Tensor gradient = normal_values({24 * 130}, static_cast<uint64_t>(20 + step)).to(dtype);
        whole.mutable_grad() = gradient;
        of_part.front().value.mutable_grad() = gradient.index_select(0, part.index);
        all->step(inputs_with(0.01));
        some->step(inputs_with(0.01));
      }
      EXPECT_TRUE(at::equal(own, whole.index_select(0, part.index))) << part.name << " " << dtype;
      for (size_t i = 0; i < all->states().size(); ++i) {
        const NamedState wanted = all->states()[i], got = some->states()[i];
        if (wanted.name.starts_with("exp_avg")) {
          EXPECT_TRUE(at::equal(got.value, wanted.value.index_select(0, part.index))) << part.name << " " << got.name;
        }
      }
    }
  }
}

// In double the weights go by aten's operators. One step from nothing: averages are the gradient's, whose codes and roundings
// both ways share but where the last bit of a product decides.
TEST(LeanAdam, BothWaysOfComputingAgree) {
  for (const char* state : {"bf16", "8bit"}) {
    for (const auto& make : {adam, adamw}) {
      const at::Tensor start = normal_values({40, 7, 3, 9}, 4).permute({1, 0, 3, 2}),
                       gradient = normal_values({40, 7, 3, 9}, 5).permute({1, 0, 3, 2});
      std::vector<OptimizerPtr> both;
      std::vector<at::Tensor> weights;
      for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
        weights.push_back(at::empty_like(start, start.options().dtype(dtype)).copy_(start));
        both.push_back(make(lean_config(state), {{"w.weight", weights.back(), true}}));
        for (int step = 1; step <= 3; ++step) {
          const at::Tensor own = at::empty_like(weights.back());
          weights.back().mutable_grad() = own.copy_(gradient / step);
          both.back()->step(inputs_with(0.01));
        }
      }
      EXPECT_TRUE(tests::close(weights[0], weights[1], at::kBFloat16, 1)) << state;
      const auto fused = both[0]->states(), reference = both[1]->states();
      for (size_t i = 0; i < fused.size(); ++i) {
        const at::Tensor differs = fused[i].value.to(at::kDouble).ne(reference[i].value.to(at::kDouble));
        if (fused[i].value.scalar_type() == at::kFloat) {
          EXPECT_TRUE(tests::close(fused[i].value, reference[i].value, at::kFloat, 16)) << fused[i].name;
        } else {
          EXPECT_LT(differs.sum().item<int64_t>(), fused[i].value.numel() / 100)
              << fused[i].name << ", of which a border decides";
        }
      }
    }
  }
}

// A linear map of 64 x 64 from noisy samples; the loss against the map that made them, after the steps.
double loss_after(const std::string& state, int steps) {
  const at::Tensor truth = normal_values({64, 64}, 10), weight = at::zeros({64, 64}, at::kFloat);
  const OptimizerPtr optimizer = adamw(lean_config(state), {{"map.weight", weight, true}});
  for (int step = 0; step < steps; ++step) {
    const at::Tensor input = normal_values({32, 64}, static_cast<uint64_t>(1000 + step));
    const at::Tensor noise = normal_values({32, 64}, static_cast<uint64_t>(5000 + step)) * 0.1;
    const at::Tensor error = at::mm(input, (weight - truth).t()) - noise;
    weight.mutable_grad() = at::mm(error.t(), input) / 32;
    optimizer->step(inputs_with(0.03 * (1 - static_cast<double>(step) / steps)));
  }
  return (weight - truth).square().mean().item<double>();
}

TEST(LeanAdam, TrainsAsFloat32Does) {
  const double untrained = 1, wide = loss_after("fp32", 400);
  EXPECT_LT(wide, 1e-3 * untrained);
  EXPECT_LT(loss_after("bf16", 400), 1.25 * wide);
  EXPECT_LT(loss_after("8bit", 400), 2 * wide) << "of mean squares: codes are a few per cent apart";
}

TEST(LeanAdam, DiceDependOnTheSeedAlone) {
  const auto trained = [](uint64_t seed) {
    const at::Tensor weight = normal_values({64, 64}, 1);
    config::RunConfig config = lean_config("bf16");
    config.loop.seed = seed;
    const OptimizerPtr optimizer = adamw(config, {{"w.weight", weight, true}});
    for (int step = 0; step < 3; ++step) {
      weight.mutable_grad() = normal_values({64, 64}, static_cast<uint64_t>(20 + step));
      optimizer->step(inputs_with(0.01));
    }
    return weight;
  };
  EXPECT_TRUE(at::equal(trained(1), trained(1)));
  EXPECT_FALSE(at::equal(trained(1), trained(2)));
}

}  // namespace
}  // namespace welkin::train
