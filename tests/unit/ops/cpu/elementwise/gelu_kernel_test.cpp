// SPDX-License-Identifier: Apache-2.0
// Against the C library in double, on every instruction set that the machine has.
#include "ops/cpu/elementwise/gelu_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "number_close.h"
#include "on_instruction_set.h"

namespace welkin::ops {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

double below(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double slope(double x) { return below(x) + x * std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::acos(-1.0)); }

// The distribution is within 2e-7: the polynomial, its argument, the exponential and their product each round.
constexpr int64_t kRoundings = 4;
constexpr int64_t kSlopeRoundings = 12;  // it grows to 1.13, and its two parts round apart

NumberFormat format_of(float /*of*/) { return kFp32; }
NumberFormat format_of(Bf16 /*of*/) { return kBf16; }

// A matrix whose numbers go over all of the distribution, and one that goes as gradient of its result.
template <typename T>
struct Operands {
  int64_t rows, width;
  std::vector<T> x, grad_out;
  std::vector<float> bias;

  Operands(int64_t rows_in, int64_t width_in) : rows(rows_in), width(width_in) {
    const int64_t count = rows * width;
    for (int64_t i = 0; i < count; ++i) {
      x.push_back(rounded_to<T>(14.0F * static_cast<float>(i) / static_cast<float>(count) - 7.0F));
      grad_out.push_back(rounded_to<T>(static_cast<float>(i % 7) - 3.0F));
    }
    for (int64_t c = 0; c < width; ++c) bias.push_back(0.125F * static_cast<float>(c % 5) - 0.25F);
  }

  float sum(int64_t i) const { return to_float(x[static_cast<size_t>(i)]) + bias[static_cast<size_t>(i % width)]; }
};

template <typename T>
const GeluKernel<T>& kernel_of(InstructionSet set);
template <>
const GeluKernel<float>& kernel_of<float>(InstructionSet set) {
  return gelu_kernels(set).of_float;
}
template <>
const GeluKernel<Bf16>& kernel_of<Bf16>(InstructionSet set) {
  return gelu_kernels(set).of_bf16;
}

constexpr int64_t kShapes[][2] = {{1, 1}, {3, 5}, {2, 16}, {33, 17}, {5, 63}, {70, 200}};

template <typename T>
void forward_is_right(InstructionSet set) {
  for (const auto& [rows, width] : kShapes) {
    const Operands<T> in(rows, width);
    const T untouched = rounded_to<T>(77.0F);
    std::vector<T> out(in.x.size() + 1, untouched);
    kernel_of<T>(set).forward({rows, width, in.x.data(), in.bias.data(), out.data()}, 0, rows);
    for (int64_t i = 0; i < rows * width; ++i) {
      const double x = in.sum(i);
      const double wanted = x * below(x);
      const double got = to_float(out[static_cast<size_t>(i)]);
      ASSERT_TRUE(tests::rounds_to(got, wanted, x, kFp32, kRoundings) || tests::close(got, wanted, format_of(T{}), 2))
          << x << " " << rows << " x " << width << " got " << got << " wanted " << wanted;
    }
    EXPECT_EQ(to_float(out.back()), 77.0F) << "nothing is written behind the last";
  }
}

template <typename T>
void backward_is_right(InstructionSet set) {
  for (const auto& [rows, width] : kShapes) {
    const Operands<T> in(rows, width);
    std::vector<T> out(in.x.size()), grad_x = in.grad_out;  // in place
    std::vector<float> grad_bias(static_cast<size_t>(width) + 1, 77.0F);
    kernel_of<T>(set).backward({rows, width, grad_x.data(), in.x.data(), in.bias.data(), out.data(), grad_x.data()}, 0, rows,
                               grad_bias.data());
    std::vector<double> sums(static_cast<size_t>(width)), sizes(static_cast<size_t>(width));
    for (int64_t i = 0; i < rows * width; ++i) {
      const double x = in.sum(i);
      const double grad = to_float(in.grad_out[static_cast<size_t>(i)]);
      const double got = to_float(grad_x[static_cast<size_t>(i)]);
      ASSERT_TRUE(tests::rounds_to(got, grad * slope(x), grad, kFp32, kSlopeRoundings) ||
                  tests::close(got, grad * slope(x), format_of(T{}), 2))
          << x << " got " << got << " wanted " << grad * slope(x);
      sums[static_cast<size_t>(i % width)] += grad * slope(x);
      sizes[static_cast<size_t>(i % width)] += std::abs(grad);
    }
    for (size_t c = 0; c < sums.size(); ++c) {
      EXPECT_TRUE(tests::rounds_to(grad_bias[c], sums[c], sizes[c], kFp32, kSlopeRoundings + rows)) << c;
    }
    EXPECT_EQ(grad_bias.back(), 77.0F);
    std::vector<T> again(in.x.size());
    kernel_of<T>(set).forward({rows, width, in.x.data(), in.bias.data(), again.data()}, 0, rows);
    for (size_t i = 0; i < again.size(); ++i) EXPECT_EQ(to_float(out[i]), to_float(again[i]));
  }
}

class GeluKernelOf : public OnInstructionSet {};

TEST_P(GeluKernelOf, ForwardIsTheDefinition) { forward_is_right<float>(GetParam()); }
TEST_P(GeluKernelOf, ForwardOfBf16IsTheDefinition) { forward_is_right<Bf16>(GetParam()); }
TEST_P(GeluKernelOf, BackwardIsTheDefinition) { backward_is_right<float>(GetParam()); }
TEST_P(GeluKernelOf, BackwardOfBf16IsTheDefinition) { backward_is_right<Bf16>(GetParam()); }

TEST_P(GeluKernelOf, OnlyTheRowsAskedFor) {
  const Operands<float> in(4, 5);
  std::vector<float> out(in.x.size(), 77.0F);
  gelu_kernels(GetParam()).of_float.forward({4, 5, in.x.data(), in.bias.data(), out.data()}, 1, 3);
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i] != 77.0F, i >= 5 && i < 15) << i;
}

// Far out GELU is x or nothing; what is no number stays none.
TEST_P(GeluKernelOf, AtTheEndsOfTheNumbers) {
  const std::vector<float> x{30.0F, -30.0F, 3.0e38F, -3.0e38F, kInfinity, 0.0F, -0.0F, kNan, 1.0e-40F};
  const auto width = static_cast<int64_t>(x.size());
  const std::vector<float> bias(x.size(), 0.0F), ones(x.size(), 1.0F);
  std::vector<float> out(x.size()), grad_x(x.size()), grad_bias(x.size());
  gelu_kernels(GetParam())
      .of_float.backward({1, width, ones.data(), x.data(), bias.data(), out.data(), grad_x.data()}, 0, 1, grad_bias.data());
  EXPECT_EQ(out[0], 30.0F);
  EXPECT_TRUE(tests::rounds_to(out[1], 0.0, 30.0, kFp32, 1)) << out[1];
  EXPECT_EQ(out[2], 3.0e38F);
  EXPECT_TRUE(tests::rounds_to(out[3], 0.0, 30.0, kFp32, 1)) << out[3];
  EXPECT_EQ(out[4], kInfinity);
  EXPECT_EQ(out[5], 0.0F);
  EXPECT_EQ(out[6], 0.0F);
  EXPECT_TRUE(std::isnan(out[7]) && std::isnan(grad_x[7]));
  EXPECT_TRUE(tests::rounds_to(grad_x[0], 1.0, 1.0, kFp32, kRoundings));
  EXPECT_TRUE(tests::rounds_to(grad_x[1], 0.0, 1.0, kFp32, 1)) << grad_x[1];
  EXPECT_TRUE(tests::rounds_to(grad_x[5], 0.5, 1.0, kFp32, kRoundings));
}

// Bit for bit what casts before and after it make.
TEST_P(GeluKernelOf, WidenedIsBf16WithCasts) {
  const GeluKernels& kernels = gelu_kernels(GetParam());
  for (const auto& [rows, width] : kShapes) {
    const Operands<Bf16> in(rows, width);
    const size_t count = in.x.size();
    std::vector<float> gradient(count);  // not yet rounded
    for (size_t i = 0; i < count; ++i) gradient[i] = std::sin(static_cast<float>(i)) * 1.2345678F;
    std::vector<Bf16> rounded(count);
    for (size_t i = 0; i < count; ++i) rounded[i] = rounded_to<Bf16>(gradient[i]);

    std::vector<Bf16> out(count), again(count), grad_x(count), widened_grad_x(count);
    std::vector<float> widened(count), grad_bias(static_cast<size_t>(width)), widened_bias(grad_bias);
    kernels.of_bf16.forward({rows, width, in.x.data(), in.bias.data(), out.data()}, 0, rows);
    kernels.of_bf16.backward({rows, width, rounded.data(), in.x.data(), in.bias.data(), again.data(), grad_x.data()}, 0, rows,
                             grad_bias.data());
    kernels.of_widened.forward({rows, width, in.x.data(), in.bias.data(), widened.data()}, 0, rows);
    kernels.of_widened.backward(
        {rows, width, gradient.data(), in.x.data(), in.bias.data(), gradient.data(), widened_grad_x.data()}, 0, rows,
        widened_bias.data());
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(widened[i], to_float(out[i])) << i;
      EXPECT_EQ(gradient[i], to_float(again[i])) << i << ": the result overwrites the gradient";
      EXPECT_EQ(to_float(widened_grad_x[i]), to_float(grad_x[i])) << i;
    }
    EXPECT_EQ(widened_bias, grad_bias);
  }
}

// Where its square is beyond the largest number, too.
TEST_P(GeluKernelOf, TheSlopeFarOutIsOneOrNothing) {
  const std::vector<float> x{1.0e19F, 1.0e35F, 1.0e36F, 1.0e38F, 3.4e38F, kInfinity};
  const auto width = static_cast<int64_t>(x.size());
  const std::vector<float> bias(x.size(), 0.0F), ones(x.size(), 1.0F);
  for (const float side : {1.0F, -1.0F}) {
    std::vector<float> there(x), out(x.size()), grad_x(x.size()), grad_bias(x.size());
    for (float& value : there) value *= side;
    gelu_kernels(GetParam())
        .of_float.backward({1, width, ones.data(), there.data(), bias.data(), out.data(), grad_x.data()}, 0, 1, grad_bias.data());
    for (size_t i = 0; i < x.size(); ++i) EXPECT_TRUE(tests::rounds_to(grad_x[i], side > 0 ? 1 : 0, 1, kFp32, 1)) << there[i];
  }
}

// NaN stays NaN, and what is beyond the largest bfloat16 rounds to infinity.
TEST_P(GeluKernelOf, Bf16KeepsWhatIsNoNumber) {
  const std::vector<Bf16> x{rounded_to<Bf16>(kNan), Bf16{0x7F81}, rounded_to<Bf16>(kInfinity), Bf16{0x7F7F}};
  const std::vector<float> bias{0.0F, 0.0F, 0.0F, 3.3e38F};
  std::vector<Bf16> out(x.size());
  gelu_kernels(GetParam()).of_bf16.forward({1, 4, x.data(), bias.data(), out.data()}, 0, 1);
  EXPECT_TRUE(std::isnan(to_float(out[0])));
  EXPECT_TRUE(std::isnan(to_float(out[1])));
  EXPECT_EQ(to_float(out[2]), kInfinity);
  EXPECT_EQ(to_float(out[3]), kInfinity);
}

INSTANTIATE_TEST_SUITE_P(Sets, GeluKernelOf,
                         ::testing::Values(InstructionSet::Portable, InstructionSet::Avx2, InstructionSet::Avx512),
                         [](const auto& set) { return std::string(name_of(set.param)); });

}  // namespace
}  // namespace welkin::ops
