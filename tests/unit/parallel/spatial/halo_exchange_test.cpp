// SPDX-License-Identifier: Apache-2.0
// A convolution around periodic axes of one member, whose halos are its own cells.
#include <ATen/ops/conv3d.h>
#include <ATen/ops/pad.h>
#include <gtest/gtest.h>

#include "gradient_check.h"
#include "parallel/spatial/halo_convolution.h"
#include "tolerance.h"

namespace welkin::parallel {
namespace {

TEST(HaloConvolution, OfOneMemberGoesAroundItsOwnAxes) {
  const AxisRule rule{.kernel = 3, .stride = 1, .padding = 1};
  const BlockGrid grid{{4, 5, 6}, {1, 1, 1}};
  const BlockLayer layer{.rules = {rule, rule, rule}, .in = grid, .out = grid, .periodic = {true, false, true}};
  const auto plan = std::make_shared<const HaloPlan>(halo_plan(layer, {{0, 0, 0}}, 0));
  const auto own = [&](const std::vector<at::Tensor>& in) {
    return halo_convolution(Group(), plan, {in[0]}, {in[1]}, 3, [&](const std::vector<at::Tensor>& x, const Cells& padding) {
      return at::conv3d(x[0], in[1], {}, 1, at::IntArrayRef(padding));
    });
  };
  const auto whole = [](const std::vector<at::Tensor>& in) {
    const at::Tensor around = at::pad(at::pad(in[0], {1, 1, 0, 0, 1, 1}, "circular"), {0, 0, 1, 1, 0, 0});
    return at::conv3d(around, in[1]);
  };
  const std::vector<at::Tensor> in{tests::test_values({2, 2, 4, 5, 6}, 1), tests::test_values({3, 2, 3, 3, 3}, 2)};
  EXPECT_TRUE(tests::same_results(own, whole, in, 2 * 27 * 240));
}

}  // namespace
}  // namespace welkin::parallel
