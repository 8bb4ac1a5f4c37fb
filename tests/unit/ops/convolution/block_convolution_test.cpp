// SPDX-License-Identifier: Apache-2.0
// Convolutions of stride 2 as convolutions of blocks: the kernels of a GPU, run on the CPU, against aten's operators; results and
// gradients in double against those of the convolutions themselves; and which form is taken.
#include "ops/convolution/block_convolution.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <tuple>
#include <vector>

#include "device_on_cpu.h"
#include "gradient_check.h"
#include "tolerance.h"

namespace welkin::ops {
namespace {

constexpr auto kBlocksLast = at::MemoryFormat::ChannelsLast3d;
const ConvolutionParams kHalvedBlocks{.stride = {2, 2, 2}, .padding = {1, 1, 1}};

class BoxBlocksOnCpu : public ::testing::TestWithParam<std::tuple<int64_t, at::ScalarType>> {
 protected:
  tests::BoxBlocksOnCpu on_cpu_;
};

TEST_P(BoxBlocksOnCpu, AreThoseOfAten) {
  const auto [channels, type] = GetParam();
  const at::Tensor x = tests::test_values({3, channels, 4, 2, 6}, 1).to(type).contiguous(kBlocksLast);
  const at::Tensor blocks = to_blocks(x), box = from_blocks(blocks);
  EXPECT_EQ(tests::BoxBlocksOnCpu::calls(), 2);
  device_ops().blocks.device = c10::kCUDA;  // by aten
  const at::Tensor wanted = to_blocks(x);
  device_ops().blocks.device = c10::kCPU;
  EXPECT_TRUE(at::equal(blocks, wanted));
  EXPECT_EQ(blocks.sizes(), (at::IntArrayRef{3, 8 * channels, 3, 2, 4}));
  EXPECT_TRUE(at::equal(box, x)) << "every point is in one block";
  EXPECT_TRUE(blocks.is_contiguous(kBlocksLast) && box.is_contiguous(kBlocksLast));
}

TEST_P(BoxBlocksOnCpu, AddBiasAndLeakyRelu) {
  const auto [channels, type] = GetParam();
  const at::Tensor blocks = tests::test_values({2, 8 * channels, 3, 2, 4}, 2).to(type).contiguous(kBlocksLast);
  const at::Tensor bias = tests::test_values({channels}, 3).to(at::kFloat);
  const at::Tensor got = from_blocks(blocks, bias, 0.3);
  device_ops().blocks.device = c10::kCUDA;  // by aten
  EXPECT_TRUE(tests::close(got, from_blocks(blocks.to(at::kDouble), bias.to(at::kDouble), 0.3), type, 1));
}

// Packs of 16 bytes, of 8, and single channels; rows of more items than threads.
INSTANTIATE_TEST_SUITE_P(Shapes, BoxBlocksOnCpu,
                         ::testing::Combine(::testing::Values<int64_t>(1, 4, 5, 8, 64),
                                            ::testing::Values(at::kFloat, at::kHalf, at::kBFloat16)));

struct Problem {
  ConvolutionKind kind;
  double slope;
  std::vector<int64_t> parts;  // channels
};

class BlockConvolution : public ::testing::TestWithParam<Problem> {};

std::vector<at::Tensor> leaves(const Problem& problem, at::ScalarType type) {
  constexpr int64_t kOut = 5;
  std::vector<at::Tensor> in;
  int64_t channels = 0;
  for (const int64_t own : problem.parts) {
    in.push_back(tests::test_values({2, own, 4, 6, 2}, 1 + own));
    channels += own;
  }
  const bool is_strided = problem.kind == ConvolutionKind::Strided;
  in.push_back(tests::test_values({is_strided ? kOut : channels, is_strided ? channels : kOut, 4, 4, 4}, 20));
  in.push_back(tests::test_values({kOut}, 21));
  for (at::Tensor& leaf : in) leaf = leaf.to(type).requires_grad_();
  return in;
}

TEST_P(BlockConvolution, EqualsTheConvolutionAndItsGradients) {
  const Problem& problem = GetParam();
  const ConvolutionCall call{kHalvedBlocks, {problem.slope}, problem.kind};
  const auto in = leaves(problem, at::kDouble);
  const at::TensorList x(in.data(), problem.parts.size());
  const at::Tensor &weight = in[x.size()], &bias = in[x.size() + 1];
  ASSERT_TRUE(fits_blocks(x, weight, call));
  const at::Tensor wanted = problem.kind == ConvolutionKind::Strided
                                ? convolution3d_reference(x, weight, bias, kHalvedBlocks, {problem.slope})
                                : transposed_convolution3d_reference(x, weight, bias, kHalvedBlocks, {problem.slope});
  const at::Tensor got = block_convolution(x, weight, bias, call);
  EXPECT_TRUE(got.is_contiguous(kBlocksLast));
  EXPECT_TRUE(tests::close(got, wanted.detach(), at::kDouble, 100));
  const at::Tensor grad = tests::test_values(wanted.sizes(), 30);
  const auto wanted_grads = torch::autograd::grad({wanted}, in, {grad});
  const auto grads = torch::autograd::grad({got}, in, {grad});
  for (size_t i = 0; i < in.size(); ++i) EXPECT_TRUE(tests::close(grads[i], wanted_grads[i], at::kDouble, 1000)) << i;
}

// As a GPU takes it: the data in 16 bits, weights and biases in float32, of which gradients come in float32.
TEST_P(BlockConvolution, TakesSixteenBits) {
  const tests::BoxBlocksOnCpu by_kernels;
  const Problem& problem = GetParam();
  const ConvolutionCall call{kHalvedBlocks, {problem.slope}, problem.kind};
  auto in = leaves(problem, at::kFloat);
  for (size_t i = 0; i < problem.parts.size(); ++i) in[i] = in[i].detach().to(at::kBFloat16).requires_grad_();
  const at::TensorList x(in.data(), problem.parts.size());
  const at::Tensor got = block_convolution(x, in[x.size()], in[x.size() + 1], call);
  EXPECT_EQ(got.scalar_type(), at::kBFloat16);
  const auto grads = torch::autograd::grad({got.to(at::kFloat).sum()}, in);
  EXPECT_GT(tests::BoxBlocksOnCpu::calls(), 1);
  for (size_t i = 0; i < in.size(); ++i) EXPECT_EQ(grads[i].scalar_type(), in[i].scalar_type());
}

TEST_P(BlockConvolution, LeavesOutWhatNobodyWants) {
  const Problem& problem = GetParam();
  auto in = leaves(problem, at::kDouble);
  in[0] = in[0].detach();
  const at::TensorList x(in.data(), problem.parts.size());
  const at::Tensor got = block_convolution(x, in[x.size()], in[x.size() + 1], {kHalvedBlocks, {problem.slope}, problem.kind});
  const at::Tensor grad_bias = torch::autograd::grad({got.sum()}, {in[x.size() + 1]})[0];
  EXPECT_TRUE(grad_bias.defined());
}

INSTANTIATE_TEST_SUITE_P(Kinds, BlockConvolution,
                         ::testing::Values(Problem{ConvolutionKind::Strided, 0.01, {4}},
                                           Problem{ConvolutionKind::Strided, 1.0, {3, 5}},
                                           Problem{ConvolutionKind::Transposed, 0.0, {3, 5}},
                                           Problem{ConvolutionKind::Transposed, 1.0, {8}}));

TEST(BlockConvolutionFits, OtherKernelsStridesAndOddBoxesDoNot) {
  const at::Tensor x = tests::test_values({1, 2, 4, 4, 4}, 1), odd = tests::test_values({1, 2, 4, 5, 4}, 1);
  const at::Tensor weight = tests::test_values({2, 2, 4, 4, 4}, 2), small = tests::test_values({2, 2, 4, 4, 2}, 2);
  const ConvolutionCall down{kHalvedBlocks, {}, ConvolutionKind::Strided}, up{kHalvedBlocks, {}, ConvolutionKind::Transposed};
  EXPECT_TRUE(fits_blocks({x}, weight, down));
  EXPECT_FALSE(fits_blocks({odd}, weight, down));
  EXPECT_TRUE(fits_blocks({odd}, weight, up));
  EXPECT_FALSE(fits_blocks({x}, small, down));
  EXPECT_FALSE(fits_blocks({x}, weight, {{.stride = {2, 1, 2}, .padding = {1, 1, 1}}, {}, ConvolutionKind::Strided}));
  EXPECT_FALSE(fits_blocks({x}, weight, {{.stride = {2, 2, 2}, .padding = {1, 0, 1}}, {}, ConvolutionKind::Strided}));
}

struct Choice {
  int measured = 0;
  std::vector<double> seconds;

  bool operator()(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    const ConvolutionCall call{kHalvedBlocks, {}, ConvolutionKind::Strided};
    const auto plain = [&](at::TensorList of, const at::Tensor& w, const at::Tensor& b) {
      EXPECT_LE(of.front().numel(), 1 << 25);
      return convolution3d_reference(of, w, b, kHalvedBlocks);
    };
    return blocks_are_faster({x}, weight, bias, call, plain, [&](const std::function<void()>& work) {
      work();
      return seconds.at(static_cast<size_t>(measured++));
    });
  }
};

TEST(BlockConvolutionChoice, IsMeasuredOnceForEachShapeAndGradient) {
  const at::Tensor weight = tests::test_values({3, 2, 4, 4, 4}, 1).to(at::kFloat).requires_grad_();
  const at::Tensor bias = tests::test_values({3}, 2).to(at::kFloat).requires_grad_();
  const at::Tensor x = tests::test_values({1, 2, 4, 4, 4}, 3).to(at::kFloat), many = x.expand({20, -1, -1, -1, -1});
  Choice choose{.seconds = {2, 1, 1, 2, 2, 1, 2, 1}};
  EXPECT_TRUE(choose(x, weight, bias));
  EXPECT_TRUE(choose(x, weight, bias));
  EXPECT_EQ(choose.measured, 2);
  EXPECT_FALSE(choose(many, weight, bias));
  EXPECT_TRUE(choose(x.detach().requires_grad_(), weight, bias));
  EXPECT_EQ(choose.measured, 6);
  const at::NoGradGuard without;
  EXPECT_TRUE(choose(x, weight, bias));
  EXPECT_EQ(choose.measured, 8);
}

}  // namespace
}  // namespace welkin::ops
