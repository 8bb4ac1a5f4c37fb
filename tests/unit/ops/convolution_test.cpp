// SPDX-License-Identifier: Apache-2.0
// Our convolutions against aten's in double, on every instruction set that the machine has.
#include "ops/convolution.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <optional>
#include <ostream>
#include <vector>

#include "gradient_check.h"
#include "ops/convolution_cpu.h"
#include "ops/instruction_set.h"
#include "tolerance.h"

namespace welkin::ops {
namespace {

struct ConvolutionCase {
  int64_t batch, in, out;
  BoxShape box, kernel;
  BoxStride rule;
  friend std::ostream& operator<<(std::ostream& to, const ConvolutionCase& c) {
    return to << c.batch << " x " << c.in << "->" << c.out << ", " << c.box[0] << 'x' << c.box[1] << 'x' << c.box[2] << " kernel "
              << c.kernel[0] << c.kernel[1] << c.kernel[2] << " stride " << c.rule.stride[0];
  }
};

const BoxShape kFour{4, 4, 4};
const BoxStride kHalving{{2, 2, 2}, {1, 1, 1}};
// The U-Net's shapes down to the last voxel, channels with every tail of a panel, depth beyond a block, and other kernels.
const std::vector<ConvolutionCase> kConvolutionCases{
    {2, 16, 16, {8, 8, 8}, kFour, kHalving},
    {1, 32, 48, {4, 6, 10}, kFour, kHalving},
    {4, 48, 80, {2, 2, 2}, kFour, kHalving},
    {1, 288, 64, {4, 4, 4}, kFour, kHalving},
    {3, 16, 144, {5, 7, 9}, kFour, kHalving},
    {2, 16, 32, {5, 4, 6}, {3, 3, 3}, {{1, 1, 1}, {1, 1, 1}}},
    {1, 32, 16, {6, 7, 8}, {2, 3, 1}, {{3, 2, 1}, {0, 2, 0}}},
};

using ConvolutionForm = at::Tensor (*)(const at::Tensor&, const at::Tensor&, const at::Tensor&, const BoxStride&);

struct ConvolutionRun {
  at::Tensor x, weight, bias;  // double, exact in float32

  ConvolutionRun(const ConvolutionCase& c, bool up)
      : x(values({c.batch, c.in, c.box[0], c.box[1], c.box[2]}, 1)),
        weight(up ? values({c.in, c.out, c.kernel[0], c.kernel[1], c.kernel[2]}, 2)
                  : values({c.out, c.in, c.kernel[0], c.kernel[1], c.kernel[2]}, 2)),
        bias(values({c.out}, 3)) {}

  static at::Tensor values(at::IntArrayRef shape, uint64_t seed) {
    return tests::test_values(shape, seed).to(at::kFloat).to(at::kDouble);
  }

  // Result and gradients by x, weight, bias, in double.
  std::vector<at::Tensor> operator()(ConvolutionForm form, at::ScalarType dtype, const BoxStride& rule) const {
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& leaf : {x, weight, bias}) leaves.push_back(leaf.to(dtype).detach().requires_grad_(true));
    const at::Tensor out = form(leaves[0], leaves[1], leaves[2], rule);
    auto results = torch::autograd::grad({out}, leaves, {values(out.sizes(), 4).to(dtype)});
    results.insert(results.begin(), out.detach());
    for (at::Tensor& result : results) result = result.to(at::kDouble);
    return results;
  }
};

class ConvolutionOnSet : public ::testing::TestWithParam<InstructionSet> {
 protected:
  void SetUp() override {
    if (!is_supported(GetParam())) GTEST_SKIP() << "this CPU has no " << name_of(GetParam());
    use_instruction_set(GetParam());
  }
  void TearDown() override { use_instruction_set(before_); }
  InstructionSet before_ = instruction_set();
};

void expect_same(const ConvolutionCase& c, bool up, ConvolutionForm own, ConvolutionForm reference) {
  SCOPED_TRACE(::testing::PrintToString(c));
  const ConvolutionRun run(c, up);
  const auto got = run(own, at::kFloat, c.rule);
  const auto wanted = run(reference, at::kDouble, c.rule);
  ASSERT_EQ(got[0].sizes(), wanted[0].sizes());
  const int64_t taps = c.kernel[0] * c.kernel[1] * c.kernel[2];
  const int64_t length = std::max({taps * c.in, taps * c.out, got[0].numel() / c.out});
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = got[i].sub(wanted[i]).abs().max().item<double>() / wanted[i].abs().max().item<double>();
    EXPECT_LE(error, 2.0 * tests::sum_tolerance(at::kFloat, length)) << "result, by x, by weight, by bias: " << i;
  }
}

TEST_P(ConvolutionOnSet, EqualsTheReference) {
  for (const ConvolutionCase& c : kConvolutionCases) expect_same(c, false, convolution3d, convolution3d_reference);
}

TEST_P(ConvolutionOnSet, TheTransposedOneEqualsItsReference) {
  for (const ConvolutionCase& c : kConvolutionCases)
    expect_same(c, true, transposed_convolution3d, transposed_convolution3d_reference);
}

INSTANTIATE_TEST_SUITE_P(Sets, ConvolutionOnSet,
                         ::testing::Values(InstructionSet::Portable, InstructionSet::Avx2, InstructionSet::Avx512),
                         [](const auto& set) { return std::string(name_of(set.param)); });

TEST(Convolution, ReferenceGradients) {
  const auto down = [](const std::vector<at::Tensor>& in) { return convolution3d(in[0], in[1], in[2], kHalving); };
  const auto up = [](const std::vector<at::Tensor>& in) { return transposed_convolution3d(in[0], in[1], in[2], kHalving); };
  const auto values = [](at::IntArrayRef shape, uint64_t seed) { return tests::test_values(shape, seed); };
  EXPECT_TRUE(tests::gradients_are_right(down, {values({1, 2, 4, 4, 2}, 1), values({3, 2, 4, 4, 4}, 2), values({3}, 3)}));
  EXPECT_TRUE(tests::gradients_are_right(up, {values({1, 2, 2, 1, 2}, 1), values({2, 3, 4, 4, 4}, 2), values({3}, 3)}));
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

TEST(Convolution, TakesWhatItsTilesFit) {
  const at::Tensor x = tests::test_values({1, 16, 4, 4, 4}, 1).to(at::kFloat);
  EXPECT_TRUE(convolution_cpu_takes(x, x, 16, 64));
  EXPECT_FALSE(convolution_cpu_takes(x, x, 4, 64));
  EXPECT_FALSE(convolution_cpu_takes(x, x, 16, 5));
  EXPECT_FALSE(convolution_cpu_takes(x.to(at::kBFloat16), x, 16, 16));
}

TEST(ConvolutionGrid, PartnersOfBothGridsAreInverse) {
  const BoxConvolution c{1, {7, 8, 9}, {3, 4, 4}, {4, 4, 4}, {2, 2, 2}, {1, 1, 1}};
  for (int axis = 0; axis < kBoxAxes; ++axis) {
    const AxisPartners up = axis_partners(c, axis, Grid::Fine);
    const AxisPartners down = axis_partners(c, axis, Grid::Coarse);
    for (size_t k = 0; k < down.size(); ++k) {
      for (size_t o = 0; o < down[k].size(); ++o) {
        if (down[k][o] < 0) continue;
        EXPECT_EQ(up[k][static_cast<size_t>(down[k][o])], static_cast<int64_t>(o));
      }
    }
  }
}

}  // namespace
}  // namespace welkin::ops
