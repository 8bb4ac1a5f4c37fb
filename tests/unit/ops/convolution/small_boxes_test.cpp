// SPDX-License-Identifier: Apache-2.0
// Convolutions that are aten's, in 16 bits, on boxes in which no kernel position lies whole: at their weight gradient oneDNN
// reads and writes beyond its memory on processors with AVX512-BF16 and without AMX.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "convolution_cases.h"
#include "gradient_check.h"
#include "ops/convolution/convolution.h"
#include "tolerance.h"

namespace welkin::ops {
namespace {

constexpr BoxShape kThree{3, 3, 3};
constexpr ConvolutionParams kSameExtents{{1, 1, 1}, {1, 1, 1}};

// Channels of which our own form takes none.
const std::vector<ConvolutionCase> kSmallDown{
    {2, 12, 24, {2, 5, 5}, kThree, kSameExtents},    {2, 20, 12, {2, 2, 2}, kThree, kSameExtents, 0.01},
    {1, 12, 24, {4, 2, 2}, kFour, kHalving},         {2, 12, 40, {5, 1, 5}, kThree, {{1, 2, 1}, {1, 1, 1}}},
    {2, 12, 40, {1, 5, 5}, {2, 3, 3}, kSameExtents}, {2, 20, 24, {5, 5, 2}, {3, 3, 4}, {{1, 1, 4}, {1, 1, 1}}},
};
const std::vector<ConvolutionCase> kSmallUp{
    {2, 12, 24, {1, 1, 1}, kFour, kHalving},
    {3, 12, 40, {6, 1, 17}, {2, 4, 3}, {{3, 4, 3}, {0, 1, 1}}},
    {2, 12, 64, {6, 1, 17}, {1, 4, 1}, {{1, 4, 1}, {0, 1, 0}}, 0.01},
    {2, 20, 24, {2, 5, 5}, kThree, kSameExtents},
};

std::vector<at::Tensor> result_and_gradients(const ConvolutionCase& c, bool up, at::ScalarType type) {
  const auto values = [&](at::IntArrayRef sizes, uint64_t seed) {
    return tests::test_values(sizes, seed).to(at::kBFloat16).to(type);
  };
  const auto [k0, k1, k2] = c.kernel;
  const at::Tensor x = values({c.batch, c.in, c.box[0], c.box[1], c.box[2]}, 1).requires_grad_();
  const at::Tensor weight = (up ? values({c.in, c.out, k0, k1, k2}, 2) : values({c.out, c.in, k0, k1, k2}, 2)).requires_grad_();
  const at::Tensor bias = values({c.out}, 3).requires_grad_();
  const at::Tensor out =
      up ? transposed_convolution3d({x}, weight, bias, c.rule, {c.slope}) : convolution3d({x}, weight, bias, c.rule, {c.slope});
  auto results = torch::autograd::grad({out}, {x, weight, bias}, {values(out.sizes(), 4)});
  results.push_back(out.detach());
  return results;
}

// Sums are float32, and are rounded once.
void expect_same_results(const std::vector<ConvolutionCase>& cases, bool up) {
  for (const ConvolutionCase& c : cases) {
    const auto wanted = result_and_gradients(c, up, at::kDouble), got = result_and_gradients(c, up, at::kBFloat16);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(tests::close(got[i], wanted[i], at::kBFloat16, 1)) << c << ", by x, weight, bias; result: " << i;
    }
  }
}

TEST(SmallBoxes, OfConvolutionsHaveTheirGradients) { expect_same_results(kSmallDown, false); }
TEST(SmallBoxes, OfTransposedConvolutionsHaveTheirGradients) { expect_same_results(kSmallUp, true); }

}  // namespace
}  // namespace welkin::ops
