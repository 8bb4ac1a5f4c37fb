// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/square.h>
#include <gtest/gtest.h>

#include <vector>

#include "gradient_check.h"
#include "ops/convolution/convolution.h"
#include "tolerance.h"

namespace welkin::ops {
namespace {

// oneDNN's own backward pass writes out of bounds there, for few channels.
TEST(TransposedConvolution, APaddingOfOneLessThanTheKernel) {
  for (const int64_t channels : {1, 2, 3, 4, 5}) {
    const at::Tensor x = at::randn({2, 4, 3, 4, 5}), weight = at::randn({4, channels, 4, 4, 4});
    const ConvolutionParams rule{.stride = {2, 2, 2}, .padding = {3, 1, 3}};
    const auto made = [&](at::ScalarType type) {
      const at::Tensor input = x.to(type, false, true).requires_grad_(), kernel = weight.to(type, false, true).requires_grad_();
      const at::Tensor y = transposed_convolution3d_reference({input}, kernel, {}, rule, {});
      at::square(y).sum().backward();
      return std::vector<at::Tensor>{y.detach(), input.grad(), kernel.grad()};
    };
    const auto got = made(at::kFloat), wanted = made(at::kDouble);
    EXPECT_EQ(got[0].sizes(), (std::vector<int64_t>{2, channels, 2, 8, 6}));
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_TRUE(tests::close(got[i], wanted[i], at::kFloat, 4 * 64 * 64)) << channels << " " << i;
  }
}

// What a convolution without padding makes, without so many points at the beginning, and so many at the end.
TEST(TransposedConvolution, TakesAwayDifferentNumbersOfPointsAtBothEnds) {
  const at::Tensor x = tests::test_values({2, 4, 3, 2, 2}, 1), weight = tests::test_values({4, 3, 4, 4, 3}, 2);
  const at::Tensor bias = tests::test_values({3}, 3);
  const BoxShape stride{2, 3, 1};
  const at::Tensor whole = transposed_convolution3d_reference({x}, weight, bias, {stride, {0, 0, 0}});
  for (const BoxShape& before : {BoxShape{0, 0, 0}, {1, 3, 0}, {3, 2, 1}}) {
    for (const BoxShape& behind : {BoxShape{0, 0, 0}, {2, 1, 0}, {3, 3, 1}, {0, 2, 1}}) {
      at::Tensor wanted = whole;
      for (size_t a = 0; a < before.size(); ++a) {
        const auto dim = static_cast<int64_t>(a) + 2;
        wanted = wanted.narrow(dim, before[a], wanted.size(dim) - before[a] - behind[a]);
      }
      const at::Tensor got = transposed_convolution3d_reference({x}, weight, bias, {stride, before, behind});
      EXPECT_TRUE(tests::close(got, wanted, at::kDouble, 4 * 48)) << before[0] << before[1] << before[2] << " " << behind[0];
    }
  }
}

// What a convolution of the box between zeros makes.
TEST(Convolution, PadsBothEndsByDifferentNumbersOfPoints) {
  const at::Tensor x = tests::test_values({2, 4, 6, 5, 4}, 1), weight = tests::test_values({3, 4, 4, 4, 3}, 2);
  const at::Tensor bias = tests::test_values({3}, 3), wide = at::constant_pad_nd(x, {0, 1, 2, 0, 1, 3});
  const ConvolutionParams rule{{2, 3, 1}, {1, 2, 0}, BoxShape{3, 0, 1}};
  EXPECT_TRUE(tests::close(convolution3d_reference({x}, weight, bias, rule),
                           convolution3d_reference({wide}, weight, bias, {rule.stride, {0, 0, 0}}), at::kDouble, 4 * 48));
}

}  // namespace
}  // namespace welkin::ops
