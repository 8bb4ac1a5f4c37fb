// SPDX-License-Identifier: Apache-2.0
// The residual sum with its layer norm by the way of a GPU: its kernels, run on the CPU, under autograd, against aten's operators
// in double.
#include "ops/norm/residual_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "device_on_cpu.h"
#include "ops/arithmetic/residual_norm_kernel.h"
#include "ops/base/autocast.h"
#include "ops/device/device_ops.h"
#include "tolerance.h"

namespace welkin::ops {
namespace {

class ResidualNormParts : public ::testing::Test {
 protected:
  tests::ResidualNormOnCpu on_cpu_;
};

class ResidualNormOnCpu : public ResidualNormParts,
                          public ::testing::WithParamInterface<std::tuple<int64_t, int64_t, at::ScalarType>> {};

at::Tensor norm_waves(at::IntArrayRef shape, double phase) {
  return at::sin(at::arange(c10::multiply_integers(shape), at::kDouble) * 0.37 + phase).view(shape);
}

struct NormCase {
  at::Tensor x, branch, weight, bias;

  NormCase(int64_t rows, int64_t width)
      : x(norm_waves({2, rows, width}, 0)),
        branch(norm_waves({2, rows, width}, 1).mul(0.5).to(at::kBFloat16).to(at::kDouble)),
        weight(norm_waves({width}, 2).add(1.5)),
        bias(norm_waves({width}, 3)) {}

  std::vector<at::Tensor> leaves(at::ScalarType type, at::ScalarType low) const {
    return {x.to(type, false, true).requires_grad_(), branch.to(low, false, true).requires_grad_(),
            weight.to(type, false, true).requires_grad_(), bias.to(type, false, true).requires_grad_()};
  }
};

TEST_P(ResidualNormOnCpu, EqualsAtenForwardAndBackward) {
  const auto [rows, width, low] = GetParam();
  const NormCase inputs(rows, width);
  const std::vector<at::Tensor> wanted_in = inputs.leaves(at::kDouble, at::kDouble), got_in = inputs.leaves(at::kFloat, low);
  const ResidualNorm wanted = residual_norm_reference(wanted_in[0], wanted_in[1], wanted_in[2], wanted_in[3], 1e-6);
  ResidualNorm got;
  {
    const AutocastGuard autocast(at::kCPU, low == at::kFloat ? std::nullopt : std::optional(low));
    got = residual_norm(got_in[0], got_in[1], got_in[2], got_in[3], 1e-6);
  }
  EXPECT_EQ(got.normed.scalar_type(), low);
  EXPECT_TRUE(tests::close(got.sum, wanted.sum, at::kFloat, 2));
  EXPECT_TRUE(tests::close(got.normed, wanted.normed, low, width));
  const auto score = [](const ResidualNorm& out) {
    return out.sum.mul(norm_waves(out.sum.sizes(), 4).to(out.sum.scalar_type())).sum() +
           out.normed.mul(norm_waves(out.sum.sizes(), 5).to(out.normed.scalar_type())).sum();
  };
  score(wanted).backward();
  score(got).backward();
  for (size_t i = 0; i < wanted_in.size(); ++i) {
    EXPECT_TRUE(tests::close(got_in[i].grad(), wanted_in[i].grad(), low, i < 2 ? width : 2 * rows)) << i;
    EXPECT_EQ(got_in[i].grad().scalar_type(), got_in[i].scalar_type()) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, ResidualNormOnCpu,
                         ::testing::Values(std::tuple(1, 2, at::kFloat), std::tuple(3, 31, at::kFloat),
                                           std::tuple(5, 33, at::kBFloat16), std::tuple(7, 384, at::kFloat),
                                           std::tuple(260, 40, at::kFloat), std::tuple(300, 64, at::kBFloat16),
                                           std::tuple(11, 50, at::kHalf), std::tuple(70, 768, at::kBFloat16),
                                           std::tuple(9, 1028, at::kHalf), std::tuple(70, 1536, at::kBFloat16),
                                           std::tuple(9, 1540, at::kHalf), std::tuple(3, 2048, at::kFloat),
                                           std::tuple(3, 2052, at::kBFloat16)),
                         [](const auto& shape) {
                           return std::to_string(std::get<0>(shape.param)) + "x" + std::to_string(std::get<1>(shape.param)) +
                                  c10::toString(std::get<2>(shape.param));
                         });

// The norm of x alone, in the type of the matmul that takes it; x is kept and not copied.
TEST_P(ResidualNormOnCpu, OfXAloneEqualsAten) {
  const auto [rows, width, low] = GetParam();
  const NormCase inputs(rows, width);
  const std::vector<at::Tensor> wanted_in = inputs.leaves(at::kDouble, at::kDouble), got_in = inputs.leaves(at::kFloat, low);
  const at::Tensor wanted = norm_for_matmul(wanted_in[0], wanted_in[2], wanted_in[3], 1e-6);
  EXPECT_EQ(on_cpu_.calls(), 0);
  at::Tensor got;
  {
    const AutocastGuard autocast(at::kCPU, low == at::kFloat ? std::nullopt : std::optional(low));
    got = norm_for_matmul(got_in[0], got_in[2], got_in[3], 1e-6);
  }
  EXPECT_EQ(got.scalar_type(), low);
  EXPECT_TRUE(tests::close(got, wanted, low, width));
  const auto score = [](const at::Tensor& out) { return out.mul(norm_waves(out.sizes(), 5).to(out.scalar_type())).sum(); };
  score(wanted).backward();
  score(got).backward();
  EXPECT_EQ(on_cpu_.calls(), 2);
  for (const size_t i : {0, 2, 3}) {
    if (i == 0 && width == 2) continue;  // two values become -1 and 1 whatever they are: their gradient is rounding
    EXPECT_TRUE(tests::close(got_in[i].grad(), wanted_in[i].grad(), low, i < 2 ? width : 2 * rows)) << i;
    EXPECT_EQ(got_in[i].grad().scalar_type(), at::kFloat) << i;
  }
}

TEST_F(ResidualNormParts, OneOfTheResultsMayBeUnused) {
  const NormCase inputs(4, 48);
  for (const bool uses_sum : {true, false}) {
    const std::vector<at::Tensor> wanted_in = inputs.leaves(at::kDouble, at::kDouble),
                                  got_in = inputs.leaves(at::kFloat, at::kFloat);
    const auto score = [&](const ResidualNorm& out) { return (uses_sum ? out.sum : out.normed).square().sum(); };
    score(residual_norm_reference(wanted_in[0], wanted_in[1], wanted_in[2], wanted_in[3], 1e-6)).backward();
    score(residual_norm(got_in[0], got_in[1], got_in[2], got_in[3], 1e-6)).backward();
    for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(tests::close(got_in[i].grad(), wanted_in[i].grad(), at::kFloat, 48)) << uses_sum;
  }
}

// It is read number by number then.
TEST_F(ResidualNormParts, AWeightMayBeginAnywhere) {
  const NormCase inputs(4, 48);
  std::vector<at::Tensor> in = inputs.leaves(at::kFloat, at::kFloat);
  const at::Tensor wanted = residual_norm_reference(in[0], in[1], in[2], in[3], 1e-6).normed;
  const at::Tensor shifted = at::cat({at::zeros({1}), in[2].detach()}).narrow(0, 1, 48).requires_grad_();
  const at::Tensor got = residual_norm(in[0], in[1], shifted, in[3], 1e-6).normed;
  EXPECT_TRUE(tests::close(got, wanted, at::kFloat, 48));
  wanted.square().sum().backward();
  got.square().sum().backward();
  EXPECT_TRUE(tests::close(shifted.grad(), in[2].grad(), at::kFloat, 48));
}

TEST_F(ResidualNormParts, OtherTypesAndDevicesTakeAtensOperators) {
  const NormCase inputs(4, 48);
  const ResidualNorm got = residual_norm(inputs.x, inputs.branch, inputs.weight, inputs.bias, 1e-6);
  const ResidualNorm wanted = residual_norm_reference(inputs.x, inputs.branch, inputs.weight, inputs.bias, 1e-6);
  EXPECT_TRUE(at::equal(got.normed, wanted.normed) && at::equal(got.sum, wanted.sum));
  EXPECT_TRUE(at::equal(norm_for_matmul(inputs.x, inputs.weight, inputs.bias, 1e-6),
                        residual_norm_reference(inputs.x, at::zeros_like(inputs.x), inputs.weight, inputs.bias, 1e-6).normed));
  device_ops().norm.device = c10::kCUDA;
  const at::Tensor x = inputs.x.to(at::kFloat), branch = inputs.branch.to(at::kFloat), weight = inputs.weight.to(at::kFloat),
                   bias = inputs.bias.to(at::kFloat);
  EXPECT_TRUE(at::equal(residual_norm(x, branch, weight, bias, 1e-6).normed,
                        residual_norm_reference(x, branch, weight, bias, 1e-6).normed));
}

TEST(NormChunks, CoverAllRows) {
  for (const int64_t rows : {1L, 255L, 256L, 257L, 65536L, 65537L, 1000000L}) {
    EXPECT_GE(norm_chunk(rows) * norm_chunks(rows), rows);
    EXPECT_LT(norm_chunk(rows) * (norm_chunks(rows) - 1), rows);
    EXPECT_LE(norm_chunks(rows), kNormChunks);
  }
}

}  // namespace
}  // namespace welkin::ops
