// SPDX-License-Identifier: Apache-2.0
// A convolution around periodic axes of one member, whose halos are its own cells.
#include <ATen/TensorOperators.h>
#include <ATen/ops/conv3d.h>
#include <ATen/ops/pad.h>
#include <gtest/gtest.h>

#include "gradient_check.h"
#include "ops/convolution/convolution.h"
#include "parallel/spatial/halo_convolution.h"
#include "tolerance.h"

namespace welkin::parallel {
namespace {

std::shared_ptr<const HaloPlan> periodic_plan(const AxisRule& rule, const Cells& in, const Cells& out) {
  const BlockLayer layer{
      .rules = {rule, rule, rule}, .in = {in, {1, 1, 1}}, .out = {out, {1, 1, 1}}, .periodic = {true, false, true}};
  return std::make_shared<const HaloPlan>(halo_plan(layer, {{0, 0, 0}}, 0));
}

// Along d and h around the box, along w not.
at::Tensor around(const at::Tensor& x, int64_t cells) { return at::pad(x, {cells, cells, 0, 0, cells, cells}, "circular"); }

TEST(HaloConvolution, OfOneMemberGoesAroundItsOwnAxes) {
  const AxisRule rule{.kernel = 3, .stride = 1, .padding = 1};
  const auto plan = periodic_plan(rule, {4, 5, 6}, {4, 5, 6});
  const auto own = [&](const std::vector<at::Tensor>& in) {
    const auto place = [&](const std::vector<at::Tensor>& x, const ops::PiecePlacement& at) {
      return at::conv3d(at::pad(x[0], {0, 0, at.padding[1], at.padding_end[1], 0, 0}), in[1]);
    };
    return halo_convolution(Group(), plan, {in[0]}, {in[1]}, 3, {.place = place});
  };
  const auto whole = [](const std::vector<at::Tensor>& in) {
    return at::conv3d(at::pad(around(in[0], 1), {0, 0, 1, 1, 0, 0}), in[1]);
  };
  const std::vector<at::Tensor> in{tests::test_values({2, 2, 4, 5, 6}, 1), tests::test_values({3, 2, 3, 3, 3}, 2)};
  EXPECT_TRUE(tests::same_results(own, whole, in, 2 * 27 * 240));
}

// Each piece is written into the whole block, with a leaky ReLU: the block's memory is asked for once, and pieces that a whole
// block would be copied from have no memory of their own.
TEST(HaloConvolution, PiecesAreWrittenIntoTheirBlock) {
  const Cells fine{8, 6, 10}, coarse{4, 3, 5};
  const ops::ConvolutionParams rule{{2, 2, 2}, {1, 1, 1}};
  const ops::LeakyRelu leaky_relu{0.1};
  for (const int64_t channels : {16, 5}) {  // of the fine box
    for (const bool up : {false, true}) {
      SCOPED_TRACE(testing::Message() << channels << (up ? " up" : " down"));
      const auto plan = up ? periodic_plan({.kernel = 4, .stride = 2, .padding = 1, .transposed = true}, coarse, fine)
                           : periodic_plan({.kernel = 4, .stride = 2, .padding = 1}, fine, coarse);
      ASSERT_GT(plan->pieces.size(), 4U);
      int64_t memories = 0;
      const auto own = [&](const std::vector<at::Tensor>& in) {
        at::Tensor block;
        const ops::PieceKernel kernel{.place =
                                          [&](const std::vector<at::Tensor>& x, const ops::PiecePlacement& at) {
                                            EXPECT_TRUE(at.activates && at.into.defined() && at.into.is_alias_of(block));
                                            const ops::ConvolutionParams piece{rule.stride, at.padding, at.padding_end};
                                            return up ? ops::transposed_convolution3d(x, in[1], in[2], piece, leaky_relu, at.into)
                                                      : ops::convolution3d(x, in[1], in[2], piece, leaky_relu, at.into);
                                          },
                                      .memory =
                                          [&](const std::vector<at::Tensor>& x, const Cells& cells) {
                                            ++memories;
                                            return block = up ? ops::transposed_convolution3d_memory(x, in[1], in[2], cells,
                                                                                                     leaky_relu)
                                                              : ops::convolution3d_memory(x, in[1], in[2], cells, leaky_relu);
                                          }};
        const at::Tensor made = halo_convolution(Group(), plan, {in[0]}, {in[1], in[2]}, in[2].size(0), kernel);
        EXPECT_TRUE(made.is_alias_of(block));
        return made;
      };
      const auto whole = [&](const std::vector<at::Tensor>& in) {
        if (!up) return ops::convolution3d_reference(around(in[0], 1), in[1], in[2], {rule.stride, {0, 1, 0}}, leaky_relu);
        return ops::transposed_convolution3d_reference(around(in[0], 1), in[1], in[2], {rule.stride, {3, 1, 3}}, leaky_relu);
      };
      const Cells& cells = up ? coarse : fine;
      const auto values = [](at::IntArrayRef shape, uint64_t seed) { return tests::test_values(shape, seed).to(at::kFloat); };
      const std::vector<at::Tensor> in{values({2, up ? 16 : channels, cells[0], cells[1], cells[2]}, 1),
                                       values({16, channels, 4, 4, 4}, 2), values({up ? channels : 16}, 3)};
      EXPECT_TRUE(tests::same_results(own, whole, in, 16 * 64 * 60));
      EXPECT_EQ(memories, 1);
    }
  }
}

}  // namespace
}  // namespace welkin::parallel
