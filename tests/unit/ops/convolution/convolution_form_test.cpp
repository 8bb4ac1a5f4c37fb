// SPDX-License-Identifier: Apache-2.0
// What our form takes, and what it leaves to aten.
#include "ops/convolution/convolution_form.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "gradient_check.h"
#include "ops/convolution/convolution.h"
#include "ops/gemm/mixed_matmul.h"

namespace welkin::ops {
namespace {

TEST(ConvolutionForm, TakesWhatItsTilesFit) {
  const auto x = [](int64_t channels) { return tests::test_values({1, channels, 4, 4, 4}, 1).to(at::kFloat); };
  const auto weight = [](int64_t a, int64_t b) { return tests::test_values({a, b, 2, 2, 2}, 1).to(at::kFloat); };
  EXPECT_TRUE(convolution_cpu_supports(x(16), weight(64, 16), ConvolutionKind::Strided));
  EXPECT_TRUE(convolution_cpu_supports(x(4), weight(64, 4), ConvolutionKind::Strided));
  EXPECT_FALSE(convolution_cpu_supports(x(16), weight(5, 16), ConvolutionKind::Strided));
  EXPECT_TRUE(convolution_cpu_supports(x(16), weight(16, 5), ConvolutionKind::Transposed));
  EXPECT_FALSE(convolution_cpu_supports(x(5), weight(5, 16), ConvolutionKind::Transposed));
  EXPECT_TRUE(convolution_cpu_supports(at::TensorList{x(4), x(4)}, weight(16, 8), ConvolutionKind::Strided));
  EXPECT_FALSE(convolution_cpu_supports(at::TensorList{x(8), x(12)}, weight(20, 8), ConvolutionKind::Transposed));
  EXPECT_TRUE(convolution_cpu_supports(x(16), weight(8, 16), ConvolutionKind::Strided)) << "half a vector";
  for (const bool widens : {false, true}) {
    const UpcastMatmulGuard rule(widens);
    EXPECT_EQ(convolution_cpu_supports(x(16).to(at::kHalf), weight(16, 16), ConvolutionKind::Strided), widens);
  }
  EXPECT_FALSE(convolution_cpu_supports(x(16), weight(16, 16).to(at::kDouble), ConvolutionKind::Strided));
}

// Aten refuses them; read as they are they would be read past their end.
TEST(ConvolutionForm, ShapesThatDoNotFitAreErrors) {
  const auto box = [](at::IntArrayRef shape, at::ScalarType type) { return tests::test_values(shape, 1).to(type); };
  const auto weight = [&](int64_t a, int64_t b) { return box({a, b, 1, 1, 1}, at::kFloat); };
  const at::Tensor bias = box({16}, at::kFloat);
  for (const bool widens : {false, true}) {
    const UpcastMatmulGuard rule(widens);
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
      const at::Tensor x = box({2, 32, 3, 3, 3}, type);
      EXPECT_THROW(convolution3d(x, weight(16, 16), bias, {}), c10::Error);
      EXPECT_THROW(convolution3d(x, weight(16, 48), bias, {}), c10::Error);
      EXPECT_THROW(convolution3d(x.narrow(1, 0, 3), weight(16, 4), bias, {}), c10::Error);
      EXPECT_THROW(transposed_convolution3d(x, weight(16, 16), bias, {}), c10::Error);
      EXPECT_THROW(convolution3d({x, x.narrow(0, 0, 1)}, weight(16, 64), bias, {}), c10::Error);
      EXPECT_THROW(convolution3d({x, x.narrow(4, 0, 2)}, weight(16, 64), bias, {}), c10::Error);
      EXPECT_THROW(transposed_convolution3d({x, x.narrow(2, 0, 2)}, weight(64, 16), bias, {}), c10::Error);
      EXPECT_THROW(convolution3d(x, weight(64, 32), bias, {}), c10::Error);
      EXPECT_THROW(transposed_convolution3d(x, weight(32, 5), bias, {}), c10::Error);
    }
  }
}

}  // namespace
}  // namespace welkin::ops
