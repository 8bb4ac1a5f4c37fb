// SPDX-License-Identifier: Apache-2.0
// The passes over many tensors against their formulas in double, on every instruction set that the machine has.
#include "ops/update/fused_update.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "number_close.h"
#include "on_instruction_set.h"

namespace welkin::ops {
namespace {

// Odd sizes, more than one piece, nothing at all.
const std::vector<int64_t> kRunSizes{1, 5, 0, 37, 16384, 40001};

float wave(int64_t i, double phase) { return static_cast<float>(std::sin(0.37 * static_cast<double>(i) + phase)); }

struct Arrays {
  std::vector<std::vector<float>> value, gradient, first, second;

  Arrays() {
    for (const int64_t size : kRunSizes) {
      for (auto* array : {&value, &gradient, &first, &second}) array->emplace_back(static_cast<size_t>(size));
      for (int64_t i = 0; i < size; ++i) {
        const auto at = static_cast<size_t>(i);
        value.back()[at] = wave(i, 0);
        gradient.back()[at] = wave(i, 1);
        first.back()[at] = wave(i, 2);
        second.back()[at] = std::abs(wave(i, 3));
      }
    }
  }

  std::vector<UpdateSpan> runs() {
    std::vector<UpdateSpan> all;
    for (size_t r = 0; r < value.size(); ++r) {
      all.push_back({kRunSizes[r], value[r].data(), gradient[r].data(), first[r].data(), second[r].data()});
    }
    return all;
  }
};

class FusedUpdate : public OnInstructionSet {};

// Roundings of numbers of the order of one.
void expect_rounds_to(float got, double wanted, int roundings) {
  EXPECT_TRUE(tests::rounds_to(got, wanted, std::max(1.0, std::abs(wanted)), kFp32, roundings));
}

TEST_P(FusedUpdate, AdamFollowsItsRule) {
  const AdamRule rule{.gradient_scale = 0.5F,
                      .decay = 0.01F,
                      .keep = 0.99F,
                      .average_share = 0.1F,
                      .square_keep = 0.95F,
                      .square_share = 0.05F,
                      .step = 0.02F,
                      .root_factor = 1.5F,
                      .epsilon = 1e-3F};
  const Arrays before;
  Arrays after;
  fused_adam(after.runs(), rule);
  for (size_t r = 0; r < kRunSizes.size(); ++r) {
    for (size_t i = 0; i < before.value[r].size(); ++i) {
      const double p = before.value[r][i], g = 0.5 * before.gradient[r][i] + double{rule.decay} * p;
      const double m = before.first[r][i] + double{rule.average_share} * (g - before.first[r][i]);
      const double v = double{rule.square_keep} * before.second[r][i] + double{rule.square_share} * g * g;
      expect_rounds_to(after.first[r][i], m, 8);
      expect_rounds_to(after.second[r][i], v, 8);
      expect_rounds_to(after.value[r][i],
                       double{rule.keep} * p - double{rule.step} * m / (std::sqrt(v) * 1.5 + double{rule.epsilon}), 16);
    }
  }
}

TEST_P(FusedUpdate, SgdFollowsItsRule) {
  const SgdRule rule{.gradient_scale = 2.0F, .decay = 0.5F, .momentum = 0.9F, .rate = 0.1F};
  const Arrays before;
  Arrays after;
  fused_sgd(after.runs(), rule);
  for (size_t r = 0; r < kRunSizes.size(); ++r) {
    for (size_t i = 0; i < before.value[r].size(); ++i) {
      const double p = before.value[r][i];
      const double u = double{rule.momentum} * before.first[r][i] + 2.0 * before.gradient[r][i] + 0.5 * p;
      expect_rounds_to(after.first[r][i], u, 8);
      expect_rounds_to(after.value[r][i], p - double{rule.rate} * u, 16);
    }
  }
}

TEST_P(FusedUpdate, SumsOfSquares) {
  const Arrays arrays;
  std::vector<FloatSpan> runs;
  double wanted = 0;
  for (const std::vector<float>& run : arrays.value) {
    runs.push_back({run.data(), static_cast<int64_t>(run.size())});
    for (const float x : run) wanted += double{x} * double{x};
  }
  EXPECT_TRUE(tests::close(sum_of_squares(runs), wanted, kFp32, 16));
  const float huge = 1e30F;
  EXPECT_TRUE(std::isinf(sum_of_squares({{&huge, 1}})));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(sum_of_squares({{&nan, 1}})));
}

INSTANTIATE_TEST_SUITE_P(Sets, FusedUpdate,
                         ::testing::Values(InstructionSet::Portable, InstructionSet::Avx2, InstructionSet::Avx512),
                         [](const auto& set) { return std::string(name_of(set.param)); });

}  // namespace
}  // namespace welkin::ops
