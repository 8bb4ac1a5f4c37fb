// SPDX-License-Identifier: Apache-2.0
// Instance norms of fields that are cut into blocks, on real processes, against the whole field on one: result and every
// gradient.
#include "parallel/spatial/block_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/instance_norm.h>
#include <ATen/ops/sin.h>
#include <gtest/gtest.h>

#include "core/text.h"
#include "parallel/comm/collectives.h"
#include "parallel/spatial/block_geometry.h"
#include "rank_processes.h"

namespace welkin::parallel {
namespace {

constexpr double kNormEpsilon = 1e-6;

at::Tensor norm_numbers(int64_t seed, at::IntArrayRef shape) {
  return at::sin(at::arange(c10::multiply_integers(shape), at::kDouble) * 1.7 + static_cast<double>(seed)).view(shape);
}

double norm_difference(const at::Tensor& value, const at::Tensor& wanted, const at::Tensor& scale) {
  if (value.sizes() != wanted.sizes()) return 1;
  if (value.numel() == 0) return 0;
  return (value - wanted).abs().max().item<double>() / scale.abs().max().item<double>();
}

// `mean` in deviations: sums of squares that are not centred would lose as many digits twice.
void check_norm(const Group& all, int64_t rows, double mean, at::ScalarType type, double bound) {
  const at::Tensor x = (norm_numbers(1, {2, 3, rows, 5}) + mean).to(type).requires_grad_();
  const at::Tensor weight = norm_numbers(2, {3}).to(type).requires_grad_(), bias = norm_numbers(3, {3}).to(type).requires_grad_();
  const at::Tensor wanted = at::instance_norm(x, weight, bias, {}, {}, true, 0.0, kNormEpsilon, true);
  const at::Tensor factors = norm_numbers(4, wanted.sizes()).to(type);
  (wanted * factors).sum().backward();

  const CellRange range = block_of(rows, all.size(), all.group_rank());
  const auto own = [&range](const at::Tensor& whole) { return whole.narrow(2, range.begin, range.size()); };
  const at::Tensor own_x = own(x.detach()).clone().requires_grad_();
  const at::Tensor own_weight = weight.detach().clone().requires_grad_(), own_bias = bias.detach().clone().requires_grad_();
  const at::Tensor made = block_norm(all, rows * 5, own_x, own_weight, own_bias, kNormEpsilon);
  (made * own(factors)).sum().backward();
  const std::string where = cat("rows ", rows, ", mean ", mean, ", place ", all.group_rank());
  EXPECT_LE(norm_difference(made, own(wanted), wanted), bound) << where;
  EXPECT_LE(norm_difference(own_x.grad(), own(x.grad()), x.grad()), bound) << where;
  EXPECT_LE(norm_difference(all_reduce(all, own_weight.grad()), weight.grad(), weight.grad()), bound) << where;
  EXPECT_LE(norm_difference(all_reduce(all, own_bias.grad()), bias.grad(), bias.grad()), bound) << where;
}

const RankTest kNorms("norms_on_blocks", [](Connection& connection) {
  const int64_t ranks = connection.world_size();
  const Group all = connection.make_group("world", Mesh("dp", {.dp_replicate = ranks}).group_of(connection.rank(), kDp));
  check_norm(all, /*rows=*/8, /*mean=*/0, at::kDouble, 1e-12);
  check_norm(all, /*rows=*/7, /*mean=*/3, at::kDouble, 1e-12);
  check_norm(all, /*rows=*/1, /*mean=*/3, at::kDouble, 1e-12);  // some members have no points
  // The mean takes ten of the 24 bits; each of aten's sums and ours rounds what is left.
  check_norm(all, /*rows=*/8, /*mean=*/1000, at::kFloat, 1e-3);
  check_norm(all, /*rows=*/8, /*mean=*/0, at::kFloat, 1e-5);
});

TEST(BlockNorm, EqualsThatOfTheWholeFieldOnTwoRanks) { run_on_ranks("norms_on_blocks", 2); }
TEST(BlockNorm, EqualsThatOfTheWholeFieldOnFourRanks) { run_on_ranks("norms_on_blocks", 4); }

}  // namespace
}  // namespace welkin::parallel
