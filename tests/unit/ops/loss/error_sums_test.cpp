// SPDX-License-Identifier: Apache-2.0
// Sums of errors by the way of a GPU: its kernels, run on the CPU, under autograd, against aten in double.
#include "ops/loss/error_sums.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/square.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include <cmath>

#include "device_on_cpu.h"
#include "gradient_check.h"
#include "ops/device/device_ops.h"

namespace welkin::ops {
namespace {

struct ErrorForm {
  ErrorKind kind = ErrorKind::Square;
  double rate = 0;
};

at::Tensor per_sample(const at::Tensor& values) { return values.flatten(1).sum(1); }

// By definition, in double.
at::Tensor error_reference(const at::Tensor& p, const at::Tensor& t, ErrorForm form) {
  if (form.kind == ErrorKind::Square) return at::stack({per_sample(at::square(p - t)), per_sample(at::square(t))}, 1);
  const at::Tensor grown = at::exp(form.rate * p.select(1, 0)) - at::exp(form.rate * t.select(1, 0));
  return at::stack({per_sample(at::abs(p - t)), per_sample(at::abs(grown))}, 1);
}

// The values of `values` in memory of another order.
at::Tensor laid_out(const at::Tensor& values, const char* layout) {
  const std::string name = layout;
  if (name == "channels_last")
    return values.contiguous(values.dim() == 5 ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::ChannelsLast);
  if (name == "part") {  // rows of more
    std::vector<int64_t> sizes = values.sizes().vec();
    sizes.back() += 3;
    const at::Tensor whole = at::full(sizes, 1e4, values.options());
    whole.narrow(-1, 2, values.size(-1)).copy_(values);
    return whole.narrow(-1, 2, values.size(-1));
  }
  return values;
}

class ErrorSumsByLayout : public ::testing::TestWithParam<std::tuple<std::vector<int64_t>, const char*, at::ScalarType>> {};

TEST_P(ErrorSumsByLayout, AreTheirDefinitionsForwardAndBackward) {
  const auto& [sizes, layout, type] = GetParam();
  const tests::ErrorSumsOnCpu on_cpu;
  const at::Tensor p = tests::test_values(sizes, 1).mul(0.2).to(type), t = tests::test_values(sizes, 2).mul(0.2).to(at::kFloat);
  const int64_t points = p.numel() / p.size(0);
  for (const ErrorForm form :
       {ErrorForm{ErrorKind::Square}, ErrorForm{ErrorKind::Absolute}, ErrorForm{ErrorKind::Absolute, 14}}) {
    const at::Tensor wanted_in = p.to(at::kDouble).requires_grad_();
    const at::Tensor got_in = laid_out(p, layout).detach().requires_grad_();
    ASSERT_TRUE(fuses_error_sums(got_in, t));
    const at::Tensor got = error_sums(got_in, t, form.kind, form.rate);
    const at::Tensor wanted = error_reference(wanted_in, t.to(at::kDouble), form);
    EXPECT_EQ(got.scalar_type(), at::kFloat);
    EXPECT_TRUE(tests::close(got.select(1, 0), wanted.select(1, 0), at::kFloat, points));
    EXPECT_TRUE(tests::close(got.select(1, 1), wanted.select(1, 1), at::kFloat, points)) << form.rate;
    const at::Tensor weights = tests::test_values({p.size(0), 2}, 3);
    got.mul(weights.to(at::kFloat)).sum().backward();
    wanted.mul(weights).sum().backward();
    EXPECT_TRUE(tests::close(got_in.grad(), wanted_in.grad(), type, 14)) << form.rate;
    EXPECT_EQ(got_in.grad().scalar_type(), type);
    EXPECT_EQ(on_cpu.calls() % 2, 0);
  }
  EXPECT_EQ(on_cpu.calls(), 6);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ErrorSumsByLayout,
                         ::testing::Values(std::tuple(std::vector<int64_t>{1, 1, 1, 1}, "plain", at::kFloat),
                                           std::tuple(std::vector<int64_t>{2, 3, 5, 33}, "plain", at::kFloat),
                                           std::tuple(std::vector<int64_t>{2, 3, 5, 33}, "channels_last", at::kBFloat16),
                                           std::tuple(std::vector<int64_t>{2, 3, 7, 40}, "part", at::kFloat),
                                           std::tuple(std::vector<int64_t>{3, 5, 4, 6, 8}, "plain", at::kBFloat16),
                                           std::tuple(std::vector<int64_t>{3, 5, 4, 6, 8}, "channels_last", at::kFloat),
                                           std::tuple(std::vector<int64_t>{2, 1, 9, 70}, "part", at::kHalf),
                                           std::tuple(std::vector<int64_t>{260, 2, 1, 3}, "plain", at::kFloat),
                                           std::tuple(std::vector<int64_t>{1, 2, 40, 30, 2}, "part", at::kFloat)),
                         [](const auto& param) {
                           return "of" + std::to_string(std::get<0>(param.param).size()) + "dims" + std::to_string(param.index);
                         });

TEST(ErrorSums, OfEqualFieldsHaveNoGradientAndWhatIsNoNumberStaysSo) {
  const tests::ErrorSumsOnCpu on_cpu;
  const at::Tensor t = tests::test_values({1, 2, 3, 4}, 1).to(at::kFloat);
  for (const ErrorKind kind : {ErrorKind::Square, ErrorKind::Absolute}) {
    const at::Tensor p = t.clone().requires_grad_();
    error_sums(p, t, kind, 14).sum().backward();
    EXPECT_EQ(p.grad().abs().max().item<float>(), 0);
    const at::Tensor broken = t.clone();
    broken.select(3, 1).fill_(NAN);
    EXPECT_TRUE(at::isnan(error_sums(broken, t, kind, 0).select(1, 0)).all().item<bool>());
  }
}

TEST(ErrorSums, AreLeftToAtenWhereThereIsNoKernel) {
  const at::Tensor t = at::ones({1, 2, 3, 4});
  EXPECT_FALSE(fuses_error_sums(t, t)) << "on a CPU";
  const tests::ErrorSumsOnCpu on_cpu;
  EXPECT_TRUE(fuses_error_sums(t, t));
  EXPECT_FALSE(fuses_error_sums(t.to(at::kDouble), t));
  EXPECT_FALSE(fuses_error_sums(t, t.to(at::kBFloat16)));
  EXPECT_FALSE(fuses_error_sums(t, t.clone().requires_grad_()));
  EXPECT_FALSE(fuses_error_sums(t.select(0, 0), t.select(0, 0)));
  EXPECT_FALSE(fuses_error_sums(t.narrow(0, 0, 0), t.narrow(0, 0, 0)));
  EXPECT_FALSE(fuses_error_sums(t, t.narrow(3, 0, 1)));
  device_ops().errors.device = c10::kCUDA;
  EXPECT_FALSE(fuses_error_sums(t, t));
}

TEST(ErrorChunks, CoverAllRows) {
  for (const int64_t rows : {1L, 7L, 8L, 9L, 2048L, 2049L, 20480L, 1000000L}) {
    EXPECT_GE(error_chunk(rows) * error_chunks(rows), rows);
    EXPECT_LT(error_chunk(rows) * (error_chunks(rows) - 1), rows);
    EXPECT_LE(error_chunks(rows), kErrorChunks);
  }
}

}  // namespace
}  // namespace welkin::ops
