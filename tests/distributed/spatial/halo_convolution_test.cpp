// SPDX-License-Identifier: Apache-2.0
// Convolutions of boxes that are cut into blocks, on real processes, against the whole box on one: result and every gradient in
// float64, and the bytes that are sent.
#include "parallel/spatial/halo_convolution.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv3d.h>
#include <ATen/ops/conv_transpose3d.h>
#include <ATen/ops/sin.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/text.h"
#include "parallel/comm/collectives.h"
#include "rank_processes.h"

namespace welkin::parallel {
namespace {

constexpr double kHaloBound = 1e-9;  // of a tensor's largest value: sums of at most some thousand float64 terms in another order
constexpr int64_t kSamples = 2, kChannels = 3, kMade = 2;

at::Tensor halo_numbers(int64_t seed, at::IntArrayRef shape) {
  return at::sin(at::arange(c10::multiply_integers(shape), at::kDouble) * 1.7 + static_cast<double>(seed)).view(shape);
}

struct Problem {
  AxisRule rule;
  Cells cells;  // of the input
  bool periodic = false;
  bool in_one_piece = false;

  Cells cells_made() const {
    Cells made{};
    for (size_t a = 0; a < kSpaceAxes; ++a) {
      const int64_t rest = rule.reach() - 2 * rule.padding;
      made[a] = rule.transposed ? (cells[a] - 1) * rule.stride + rest : (cells[a] - rest) / rule.stride + 1;
      if (periodic) made[a] = rule.transposed ? cells[a] * rule.stride : cells[a] / rule.stride;
    }
    return made;
  }
  std::string text() const {
    return cat("kernel ", rule.kernel, ", stride ", rule.stride, ", padding ", rule.padding, ", dilation ", rule.dilation,
               rule.transposed ? ", transposed" : "", periodic ? ", periodic" : "", in_one_piece ? ", in one piece" : "",
               ", cells ", join(cells, "x"));
  }
  std::vector<int64_t> weight_shape() const {
    const int64_t k = rule.kernel;
    return rule.transposed ? std::vector<int64_t>{2 * kChannels, kMade, k, k, k}
                           : std::vector<int64_t>{kMade, 2 * kChannels, k, k, k};
  }
  at::Tensor placed(const at::Tensor& x, const at::Tensor& weight, const ops::PiecePlacement& at) const {
    const std::vector<int64_t> stride(3, rule.stride), dilation(3, rule.dilation);
    if (!rule.transposed) {
      const std::vector<int64_t> ends{at.padding[2],     at.padding_end[2], at.padding[1],
                                      at.padding_end[1], at.padding[0],     at.padding_end[0]};
      return at::conv3d(at::constant_pad_nd(x, ends), weight, {}, stride, at::IntArrayRef(0), dilation);
    }
    at::Tensor made = at::conv_transpose3d(x, weight, {}, stride, {0, 0, 0}, {0, 0, 0}, 1, dilation);
    for (size_t a = 0; a < kSpaceAxes; ++a) {
      const int64_t dim = kFirstSpaceDim + static_cast<int64_t>(a), both = at.padding[a] + at.padding_end[a];
      made = made.narrow(dim, at.padding[a], made.size(dim) - both);
    }
    return made;
  }
  // Around the borders where the box is periodic.
  at::Tensor whole(const at::Tensor& x, const at::Tensor& weight) const {
    const Cells padding{rule.padding, rule.padding, rule.padding};
    if (!periodic) return placed(x, weight, {.padding = padding, .padding_end = padding});
    const int64_t around = rule.transposed ? (rule.reach() + rule.stride - 1) / rule.stride : rule.padding;
    at::Tensor wide = x;
    for (int64_t dim = 2; dim < 5; ++dim) {
      const int64_t edge = x.size(dim);
      wide = wide.index_select(dim, at::arange(-around, edge + around, at::kLong).remainder(edge));
    }
    at::Tensor made = placed(wide, weight, {});
    if (!rule.transposed) return made;
    const Cells extent = cells_made();
    for (int64_t a = 0; a < 3; ++a)
      made = made.narrow(2 + a, around * rule.stride + rule.padding, extent[static_cast<size_t>(a)]);
    return made;
  }
};

at::Tensor own_part(const at::Tensor& whole, const Block& block) {
  at::Tensor part = whole;
  for (int64_t a = 0; a < 3; ++a) {
    const CellRange& range = block.axes[static_cast<size_t>(a)];
    part = part.narrow(2 + a, range.begin, range.size());
  }
  return part;
}

double difference(const at::Tensor& value, const at::Tensor& wanted, const at::Tensor& scale) {
  if (value.sizes() != wanted.sizes()) return 1;
  if (value.numel() == 0) return 0;
  return (value - wanted).abs().max().item<double>() / scale.abs().max().item<double>();
}

std::vector<Problem> problems() {
  std::vector<Problem> all;
  for (const bool periodic : {false, true}) {
    all.push_back({{.kernel = 4, .stride = 2, .padding = 1}, {8, 8, 8}, periodic});
    all.push_back({{.kernel = 4, .stride = 2, .padding = 1, .transposed = true}, {4, 4, 4}, periodic});
    all.push_back({{.kernel = 3, .stride = 1, .padding = 1}, {6, 5, 7}, periodic});
    all.push_back({{.kernel = 3, .stride = 1, .padding = 2, .dilation = 2}, {8, 9, 8}, periodic});
    all.push_back({{.kernel = 4, .stride = 2, .padding = 1}, {2, 2, 2}, periodic});
    all.push_back({{.kernel = 4, .stride = 2, .padding = 1, .transposed = true}, {1, 1, 1}, periodic});
  }
  all.push_back({{.kernel = 2, .stride = 2}, {8, 8, 12}, false});
  all.push_back({{.kernel = 5, .stride = 3, .padding = 2}, {10, 9, 8}, false});
  all.push_back({{.kernel = 3, .stride = 2, .padding = 1, .transposed = true}, {5, 4, 5}, false});
  const std::vector<Problem> in_pieces = all;
  for (Problem problem : in_pieces) {
    problem.in_one_piece = true;
    all.push_back(problem);
  }
  return all;
}

void check(const Group& all, const Cells& blocks, const Problem& problem) {
  std::vector<Cells> coordinates;
  for (int64_t place = 0; place < all.size(); ++place) {
    coordinates.push_back({place / (blocks[1] * blocks[2]), place / blocks[2] % blocks[1], place % blocks[2]});
  }
  const BlockLayer layer{.rules = {problem.rule, problem.rule, problem.rule},
                         .in = {problem.cells, blocks},
                         .out = {problem.cells_made(), blocks},
                         .periodic = {problem.periodic, problem.periodic, problem.periodic},
                         .in_one_piece = problem.in_one_piece};
  const auto plan = std::make_shared<const HaloPlan>(halo_plan(layer, coordinates, all.group_rank()));
  const std::vector<int64_t> shape{kSamples, kChannels, problem.cells[0], problem.cells[1], problem.cells[2]};
  const at::Tensor first = halo_numbers(1, shape).requires_grad_(), second = halo_numbers(2, shape).requires_grad_();
  const at::Tensor weight = halo_numbers(3, problem.weight_shape()).requires_grad_();
  const at::Tensor wanted = problem.whole(at::cat({first, second}, 1), weight);
  const at::Tensor factors = halo_numbers(4, wanted.sizes());
  (wanted * factors).sum().backward();

  const at::Tensor own_first = own_part(first.detach(), plan->held).clone().requires_grad_();
  const at::Tensor own_second = own_part(second.detach(), plan->held).clone().requires_grad_();
  const at::Tensor own_weight = weight.detach().clone().requires_grad_();
  const auto place = [&](const std::vector<at::Tensor>& x, const ops::PiecePlacement& at) {
    return problem.placed(at::cat(x, 1), own_weight, at);
  };
  const at::Tensor made = halo_convolution(all, plan, {own_first, own_second}, {own_weight}, kMade, {.place = place});
  (made * own_part(factors, plan->made)).sum().backward();
  const std::string where = cat(problem.text(), " on ", join(blocks, "x"), ", place ", all.group_rank());
  EXPECT_LE(difference(made, own_part(wanted, plan->made), wanted), kHaloBound) << where;
  EXPECT_LE(difference(own_first.grad(), own_part(first.grad(), plan->held), first.grad()), kHaloBound) << where;
  EXPECT_LE(difference(own_second.grad(), own_part(second.grad(), plan->held), second.grad()), kHaloBound) << where;
  ASSERT_TRUE(own_weight.grad().defined()) << where;
  EXPECT_LE(difference(all_reduce(all, own_weight.grad()), weight.grad(), weight.grad()), kHaloBound) << where;
}

const RankTest kBlocks("convolutions_on_blocks", [](Connection& connection) {
  const int64_t ranks = connection.world_size();
  const Group all = connection.make_group("world", Mesh("dp", {.dp_replicate = ranks}).group_of(connection.rank(), kDp));
  for (const Cells& blocks : {Cells{1, 1, ranks}, Cells{ranks, 1, 1}, Cells{1, 2, ranks / 2}, Cells{2, 2, ranks / 4}}) {
    if (blocks[0] * blocks[1] * blocks[2] != ranks) continue;
    for (const Problem& problem : problems()) check(all, blocks, problem);
  }
});

TEST(HaloConvolution, EqualsTheWholeBoxOnTwoRanks) { run_on_ranks("convolutions_on_blocks", 2); }
TEST(HaloConvolution, EqualsTheWholeBoxOnFourRanks) { run_on_ranks("convolutions_on_blocks", 4); }
TEST(HaloConvolution, EqualsTheWholeBoxOnEightRanks) { run_on_ranks("convolutions_on_blocks", 8, 120); }

}  // namespace
}  // namespace welkin::parallel
