// SPDX-License-Identifier: Apache-2.0
// Our convolutions against aten's in double, on every instruction set that the machine has.
#include "ops/convolution/convolution.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "convolution_cases.h"
#include "gradient_check.h"
#include "on_instruction_set.h"
#include "ops/base/instruction_set.h"
#include "ops/convolution/convolution_form.h"
#include "ops/gemm/mixed_matmul.h"
#include "tolerance.h"

namespace welkin::ops {
namespace {

using ConvolutionForm = at::Tensor (*)(at::TensorList, const at::Tensor&, const at::Tensor&, const ConvolutionParams&,
                                       const LeakyRelu&);

struct ConvolutionRun {
  std::vector<at::Tensor> x;  // one or two
  at::Tensor weight, bias;    // all double, exact in the operands' dtype

  ConvolutionRun(const ConvolutionCase& c, bool up, at::ScalarType operands) {
    const int64_t in = c.in + c.second;
    for (const int64_t channels : {c.in, c.second}) {
      if (channels > 0)
        x.push_back(values({c.batch, channels, c.box[0], c.box[1], c.box[2]}, static_cast<uint64_t>(channels), operands));
    }
    weight = up ? values({in, c.out, c.kernel[0], c.kernel[1], c.kernel[2]}, 2, operands)
                : values({c.out, in, c.kernel[0], c.kernel[1], c.kernel[2]}, 2, operands);
    bias = values({c.out}, 3, at::kFloat);
  }

  static at::Tensor values(at::IntArrayRef shape, uint64_t seed, at::ScalarType operands) {
    return tests::test_values(shape, seed).to(operands).to(at::kDouble);
  }

  // Result and gradients by all x, weight, bias, in double.
  std::vector<at::Tensor> operator()(ConvolutionForm form, at::ScalarType dtype, at::ScalarType weights, const ConvolutionCase& c,
                                     at::ScalarType operands) const {
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& part : x) leaves.push_back(part.to(dtype).detach().requires_grad_(true));
    for (const at::Tensor& leaf : {weight, bias}) leaves.push_back(leaf.to(weights).detach().requires_grad_(true));
    const at::Tensor out = form(at::TensorList(leaves).slice(0, x.size()), leaves[x.size()], leaves.back(), c.rule, {c.slope});
    auto results = torch::autograd::grad({out}, leaves, {values(out.sizes(), 4, operands).to(dtype)});
    results.insert(results.begin(), out.detach());
    for (at::Tensor& result : results) result = result.to(at::kDouble);
    return results;
  }
};

class ConvolutionOnSet : public OnInstructionSet {};

ConvolutionForm own_form(bool up) {
  return up ? [](at::TensorList x, const at::Tensor& weight, const at::Tensor& bias, const ConvolutionParams& rule,
                 const LeakyRelu& leaky_relu) { return transposed_convolution3d(x, weight, bias, rule, leaky_relu); }
            : [](at::TensorList x, const at::Tensor& weight, const at::Tensor& bias, const ConvolutionParams& rule,
                 const LeakyRelu& leaky_relu) { return convolution3d(x, weight, bias, rule, leaky_relu); };
}
ConvolutionForm reference_form(bool up) { return up ? transposed_convolution3d_reference : convolution3d_reference; }

// In bfloat16 the sums are float: what is rounded is the result, the gradient behind the activation, and the gradients by x.
void expect_same(const ConvolutionCase& c, bool up, at::ScalarType dtype = at::kFloat) {
  SCOPED_TRACE(::testing::PrintToString(c));
  const ConvolutionRun run(c, up, dtype);
  std::vector<at::Tensor> taken;
  for (const at::Tensor& part : run.x) taken.push_back(part.to(dtype));
  ASSERT_TRUE(
      convolution_cpu_supports(taken, run.weight.to(at::kFloat), up ? ConvolutionKind::Transposed : ConvolutionKind::Strided));
  const auto got = run(own_form(up), dtype, at::kFloat, c, dtype);
  const auto wanted = run(reference_form(up), at::kDouble, at::kDouble, c, dtype);
  ASSERT_EQ(got[0].sizes(), wanted[0].sizes());
  const int64_t taps = c.kernel[0] * c.kernel[1] * c.kernel[2];
  const int64_t length = std::max({taps * (c.in + c.second), taps * c.out, got[0].numel() / c.out});
  const double bound =
      2.0 * tests::sum_tolerance(at::kFloat, length) + (dtype == at::kFloat ? 0 : tests::sum_tolerance(dtype, 1));
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = got[i].sub(wanted[i]).abs().max().item<double>() / wanted[i].abs().max().item<double>();
    EXPECT_LE(error, bound) << "result, by x, by weight, by bias: " << i;
  }
}

// Result and gradients of a ReLU whose first channel is closed by `bias`, where a gradient is `closed`.
std::vector<at::Tensor> with_closed_channel(const ConvolutionRun& run, const ConvolutionCase& c, bool up, at::ScalarType type,
                                            double bias, double closed) {
  const at::Tensor x = run.x[0].to(type, false, true).requires_grad_();
  const at::Tensor weight = run.weight.to(at::kFloat, false, true).requires_grad_();
  const at::Tensor biases = run.bias.to(at::kFloat, false, true);
  biases.select(0, 0).fill_(bias);
  biases.requires_grad_();
  const at::Tensor out = own_form(up)({x}, weight, biases, c.rule, {c.slope});
  const at::Tensor grad = at::where(out.gt(0), at::ones({}, out.options()), at::full({}, closed, out.options()));
  std::vector<at::Tensor> results = torch::autograd::grad({out}, {x, weight, biases}, {grad});
  results.push_back(out.detach());
  return results;
}

void expect_closed(const ConvolutionRun& run, const ConvolutionCase& c, bool up, at::ScalarType type) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto got = with_closed_channel(run, c, up, type, -kInfinity, kInfinity);
  const auto wanted = with_closed_channel(run, c, up, type, -1000, 0);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(at::equal(got[i], wanted[i])) << "by x, by weight, by bias, result: " << i;
  EXPECT_TRUE(with_closed_channel(run, c, up, type, std::nan(""), 0)[3].select(1, 0).isnan().all().item<bool>());
  ConvolutionCase leaky = c;
  leaky.slope = 0.25;
  EXPECT_TRUE(with_closed_channel(run, leaky, up, type, -kInfinity, 0)[3].select(1, 0).eq(-kInfinity).all().item<bool>());
}

TEST_P(ConvolutionOnSet, EqualsTheReference) {
  for (const ConvolutionCase& c : kConvolutionCases) expect_same(c, false);
}

TEST_P(ConvolutionOnSet, TheTransposedOneEqualsItsReference) {
  for (const ConvolutionCase& c : kConvolutionCases) expect_same(c, true);
}

TEST_P(ConvolutionOnSet, FewChannelsOfTheFineGrid) {
  for (const ConvolutionCase& c : kNarrowDown) expect_same(c, false);
  for (const ConvolutionCase& c : kNarrowUp) expect_same(c, true);
}

TEST_P(ConvolutionOnSet, MultiplesOfHalfAVector) {
  for (const bool up : {false, true}) {
    for (const ConvolutionCase& c : kHalfVectors) expect_same(c, up);
    for (const ConvolutionCase& c : up ? kHalfVectorsUp : kHalfVectorsDown) expect_same(c, up);
  }
}

TEST_P(ConvolutionOnSet, ATransposedOneWithUnequalEnds) {
  for (const ConvolutionCase& c : kUnequalEnds) expect_same(c, true);
  for (const ConvolutionCase& c : kUnequalNarrowUp) expect_same(c, true);
  expect_same(kPointsAdded, true);
}

TEST_P(ConvolutionOnSet, WithUnequalEnds) {
  for (const ConvolutionCase& c : kUnequalEnds) expect_same(c, false);
  for (const ConvolutionCase& c : kUnequalNarrowDown) expect_same(c, false);
}

// In memory bfloat16, multiplied as float32.
TEST_P(ConvolutionOnSet, OfWidenedBfloat16) {
  const UpcastMatmulGuard wide(true);
  for (const bool up : {false, true}) {
    for (const ConvolutionCase& c : kConvolutionCases) expect_same(c, up, at::kBFloat16);
    for (const ConvolutionCase& c : up ? kNarrowUp : kNarrowDown) expect_same(c, up, at::kBFloat16);
    for (const ConvolutionCase& c : kHalfVectors) expect_same(c, up, at::kBFloat16);
    for (const ConvolutionCase& c : up ? kHalfVectorsUp : kHalfVectorsDown) expect_same(c, up, at::kBFloat16);
  }
}

// The padding is longer than the taps reach: the voxels of the box meet none of them, or few.
TEST_P(ConvolutionOnSet, PaddingBeyondTheTaps) {
  const ConvolutionParams rule{{7, 7, 7}, {3, 3, 3}};
  for (const int64_t last : {1, 2, 9}) {
    const ConvolutionCase c{1, 3, 16, {1, 2, last}, {1, 1, 1}, rule};
    const ConvolutionRun run(c, false, at::kFloat);
    const auto got = run(own_form(false), at::kFloat, at::kFloat, c, at::kFloat);
    const auto wanted = run(convolution3d_reference, at::kDouble, at::kDouble, c, at::kFloat);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(tests::close(got[i], wanted[i], at::kFloat, 3)) << last << " " << i;
  }
}

// What becomes of voxels where a ReLU is closed does not depend on how far below zero they are, nor on their gradients, as long
// as these are numbers or infinite: the loss scaler would refuse the step of a NaN.
TEST_P(ConvolutionOnSet, AReluMakesInfinitiesZero) {
  const std::vector<ConvolutionCase> ways{
      {1, 16, 32, {2, 3, 4}, {1, 1, 1}, {}, 0.0},  // channels-last both ways
      {1, 4, 32, {2, 3, 4}, {1, 1, 1}, {}, 0.0},   // downwards from few channels, in registers
      {1, 3, 32, {2, 3, 4}, {1, 1, 3}, {}, 0.0},   // and from columns
      {1, 16, 5, {2, 3, 4}, {1, 1, 1}, {}, 0.0},   // upwards to few
  };
  for (const bool widens : {false, true}) {
    const UpcastMatmulGuard rule(widens);
    for (const ConvolutionCase& c : ways) {
      for (const bool up : {false, true}) {
        for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
          const ConvolutionRun run(c, up, type);
          if (!convolution_cpu_supports({run.x[0].to(type)}, run.weight.to(at::kFloat),
                                        up ? ConvolutionKind::Transposed : ConvolutionKind::Strided))
            continue;
          SCOPED_TRACE(::testing::Message() << c << ", up " << up << ", " << type << ", widens " << widens);
          expect_closed(run, c, up, type);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, ConvolutionOnSet,
                         ::testing::Values(InstructionSet::Portable, InstructionSet::Avx2, InstructionSet::Avx512,
                                           InstructionSet::Amx),
                         [](const auto& set) { return std::string(name_of(set.param)); });

TEST(Convolution, OfBfloat16) {
  if (!convolution_cpu_supports(at::TensorList{tests::test_values({1, 16, 2, 2, 2}, 1).to(at::kBFloat16)},
                                tests::test_values({16, 16, 2, 2, 2}, 1).to(at::kFloat), ConvolutionKind::Strided)) {
    GTEST_SKIP() << "this CPU has no fast dot products of bfloat16";
  }
  for (const ConvolutionCase& c : kConvolutionCases) {
    expect_same(c, false, at::kBFloat16);
    expect_same(c, true, at::kBFloat16);
  }
  for (const ConvolutionCase& c : kNarrowDown) expect_same(c, false, at::kBFloat16);
  for (const ConvolutionCase& c : kNarrowUp) expect_same(c, true, at::kBFloat16);
}

// By float32's kernels where the processor has no matmuls of the type.
TEST(Convolution, OfWidenedHalf) {
  const UpcastMatmulGuard wide(true);
  for (const bool up : {false, true}) {
    for (const ConvolutionCase& c : kConvolutionCases) expect_same(c, up, at::kHalf);
    for (const ConvolutionCase& c : up ? kNarrowUp : kNarrowDown) expect_same(c, up, at::kHalf);
  }
}

// Shapes that only aten takes, such as channels that fill no tile.
TEST(Convolution, AtensFormIsWidenedToo) {
  const UpcastMatmulGuard wide(true);
  for (const bool up : {false, true}) {
    const ConvolutionCase c{2, 5, 3, {4, 4, 4}, kFour, kHalving, 0.5};
    const ConvolutionRun run(c, up, at::kBFloat16);
    ASSERT_FALSE(convolution_cpu_supports(run.x.front().to(at::kBFloat16), run.weight.to(at::kFloat),
                                          up ? ConvolutionKind::Transposed : ConvolutionKind::Strided));
    const auto got = run(own_form(up), at::kBFloat16, at::kFloat, c, at::kBFloat16);
    const auto wanted = run(reference_form(up), at::kDouble, at::kDouble, c, at::kBFloat16);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(tests::close(got[i], wanted[i], at::kBFloat16, 1)) << up << " " << i;
  }
}

// The weights are float32 parameters: their matmuls are those of what the type makes of them, ties included.
TEST_P(ConvolutionOnSet, WidenedWeightsAreRounded) {
  const UpcastMatmulGuard wide(true);
  const at::Tensor weight = tests::test_values({16, 16, 2, 2, 2}, 2).mul(512).round_().div_(256).to(at::kFloat);
  const at::Tensor bias = at::zeros({16});
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const at::Tensor x = tests::test_values({1, 16, 4, 4, 4}, 1).to(type);
    const at::Tensor rounded = weight.to(type).to(at::kFloat);
    EXPECT_TRUE(at::equal(convolution3d(x, weight, bias, kHalving), convolution3d(x, rounded, bias, kHalving)));
    EXPECT_TRUE(
        at::equal(transposed_convolution3d(x, weight, bias, kHalving), transposed_convolution3d(x, rounded, bias, kHalving)));
  }
}

TEST(Convolution, DoesNotDependOnTheNumberOfThreads) {
  const int before = at::get_num_threads();
  const ConvolutionCase wide{2, 48, 272, {8, 8, 8}, kFour, kHalving, 0.01};
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const bool up : {false, true}) {
      for (const ConvolutionCase& c : {wide, up ? kNarrowUp.back() : kNarrowDown.back()}) {
        SCOPED_TRACE(::testing::PrintToString(c));
        const ConvolutionRun run(c, up, type);
        at::set_num_threads(1);
        const auto one = run(own_form(up), type, at::kFloat, c, type);
        at::set_num_threads(3);
        const auto three = run(own_form(up), type, at::kFloat, c, type);
        for (size_t i = 0; i + 1 < one.size(); ++i) EXPECT_TRUE(at::equal(one[i], three[i])) << i;  // the last is aten's
      }
    }
  }
  at::set_num_threads(before);
}

// Of channels that our form does not take; weights stay float32, as it has them.
TEST(Convolution, AtensFormTakesAnInputOfSixteenBits) {
  const at::Tensor x = tests::test_values({2, 16, 4, 4, 4}, 1), bias = tests::test_values({5}, 3).to(at::kFloat);
  for (const bool widens : {false, true}) {
    const UpcastMatmulGuard rule(widens);
    for (const bool up : {false, true}) {
      const at::Tensor weight = tests::test_values(up ? at::IntArrayRef{17, 5, 4, 4, 4} : at::IntArrayRef{5, 16, 4, 4, 4}, 2);
      const at::Tensor in = up ? tests::test_values({2, 17, 4, 4, 4}, 1) : x;
      const ConvolutionForm form = own_form(up);
      const at::Tensor low = form(in.to(at::kBFloat16), weight.to(at::kFloat), bias, kHalving, {.slope = 0.01});
      EXPECT_EQ(low.scalar_type(), at::kBFloat16);
      const at::Tensor exact = form(in.to(at::kBFloat16).to(at::kDouble), weight.to(at::kBFloat16).to(at::kDouble),
                                    bias.to(at::kDouble), kHalving, {.slope = 0.01});
      EXPECT_TRUE(tests::close(low, exact, at::kBFloat16, 17 * 64));
    }
  }
}

// As a GPU's tensor cores want an odd number of channels.
TEST(Convolution, InEightsIsTheSame) {
  const std::vector<ConvolutionCase> cases{{2, 3, 5, {4, 6, 4}, kFour, kHalving, 0.01},
                                           {1, 8, 5, {4, 4, 2}, kFour, kHalving, 1.0, 8},
                                           {1, 5, 16, {4, 4, 4}, {3, 3, 3}, {{1, 1, 1}, {1, 1, 1}}, 0.0, 6}};
  for (const bool up : {false, true}) {
    for (const ConvolutionCase& c : cases) {
      SCOPED_TRACE(::testing::PrintToString(c));
      const ConvolutionRun run(c, up, at::kDouble);
      const auto got =
          run(up ? transposed_convolution3d_in_eights : convolution3d_in_eights, at::kDouble, at::kDouble, c, at::kDouble);
      const auto wanted = run(reference_form(up), at::kDouble, at::kDouble, c, at::kDouble);
      for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(tests::close(got[i], wanted[i], at::kDouble, 1000)) << up << " " << i;
    }
  }
  const at::Tensor out = transposed_convolution3d_in_eights(
      {tests::test_values({1, 3, 4, 4, 4}, 1)}, tests::test_values({3, 5, 4, 4, 4}, 2), tests::test_values({5}, 3), kHalving);
  EXPECT_EQ(out.size(1), 5);
  EXPECT_EQ(out.storage().nbytes(), sizeof(double) * 8 * 8 * 8 * 8) << "eight channels were made";
}

TEST(Convolution, BoxesThatLieChannelsLastAreJoinedAsRows) {
  static std::vector<int64_t> joined;  // per join: of how many boxes rows were made before
  static int64_t rows;
  joined.clear();
  rows = 0;
  const auto note = [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
    if (std::string_view(function.name()) == "aten::flatten") ++rows;
    if (std::string_view(function.name()) == "aten::cat") joined.push_back(std::exchange(rows, 0));
    return nullptr;
  };
  const ConvolutionCase c{2, 3, 6, {4, 6, 2}, kFour, kHalving, 0.01, 5};
  const ConvolutionRun run(c, false, at::kDouble);
  const ConvolutionForm channels_last = [](at::TensorList x, const at::Tensor& weight, const at::Tensor& bias,
                                           const ConvolutionParams& rule, const LeakyRelu& leaky_relu) {
    std::vector<at::Tensor> laid;
    for (const at::Tensor& part : x) laid.push_back(part.contiguous(at::MemoryFormat::ChannelsLast3d));
    return convolution3d_reference(laid, weight, bias, rule, leaky_relu);
  };
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(note));
  const auto got = run(channels_last, at::kDouble, at::kDouble, c, at::kDouble);
  const auto wanted = run(convolution3d_reference, at::kDouble, at::kDouble, c, at::kDouble);
  at::removeCallback(handle);
  EXPECT_EQ(joined, (std::vector<int64_t>{2, 0}));
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(tests::close(got[i], wanted[i], at::kDouble, 1000)) << i;
}

TEST(Convolution, ReferenceGradients) {
  const auto down = [](const std::vector<at::Tensor>& in) { return convolution3d(in[0], in[1], in[2], kHalving); };
  const auto up = [](const std::vector<at::Tensor>& in) { return transposed_convolution3d(in[0], in[1], in[2], kHalving); };
  const auto values = [](at::IntArrayRef shape, uint64_t seed) { return tests::test_values(shape, seed); };
  EXPECT_TRUE(tests::gradcheck(down, {values({1, 2, 4, 4, 2}, 1), values({3, 2, 4, 4, 4}, 2), values({3}, 3)}));
  EXPECT_TRUE(tests::gradcheck(up, {values({1, 2, 2, 1, 2}, 1), values({2, 3, 4, 4, 4}, 2), values({3}, 3)}));
}

TEST(Convolution, OnlyTheGradientsThatAreWanted) {
  const at::Tensor x = tests::test_values({1, 16, 4, 4, 4}, 1).to(at::kFloat);
  const at::Tensor weight = tests::test_values({16, 16, 4, 4, 4}, 2).to(at::kFloat).requires_grad_(true);
  const at::Tensor bias = tests::test_values({16}, 3).to(at::kFloat);
  const at::Tensor out = convolution3d(x, weight, bias, kHalving);
  const auto grads = torch::autograd::grad({out.sum()}, {weight});
  EXPECT_EQ(grads[0].sizes(), weight.sizes());
  EXPECT_TRUE(out.is_contiguous(at::MemoryFormat::ChannelsLast3d));
}

TEST(Convolution, ANegativeSlopeIsAtens) {
  const at::Tensor x = tests::test_values({1, 16, 3, 3, 3}, 1).to(at::kFloat).requires_grad_();
  const at::Tensor weight = tests::test_values({16, 16, 1, 1, 1}, 2).to(at::kFloat);
  const at::Tensor bias = tests::test_values({16}, 3).to(at::kFloat);
  const at::Tensor got = convolution3d(x, weight, bias, {}, {-0.5});
  EXPECT_TRUE(tests::close(got, convolution3d_reference(x, weight, bias, {}, {-0.5}), at::kFloat, 16));
  EXPECT_THROW(got.sum().backward(), c10::Error) << "of the result alone nobody knows its sign before the leaky ReLU";
}

}  // namespace
}  // namespace welkin::ops
