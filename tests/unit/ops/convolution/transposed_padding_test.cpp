// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/randn.h>
#include <ATen/ops/square.h>
#include <gtest/gtest.h>

#include <vector>

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

}  // namespace
}  // namespace welkin::ops
