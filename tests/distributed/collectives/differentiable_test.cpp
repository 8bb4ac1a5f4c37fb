// SPDX-License-Identifier: Apache-2.0
// Gradients of the differentiable collectives against central differences in float64. The function differentiated is one number
// of all ranks: the sum over the ranks of what each makes of its output. A rank's gradient is the derivative of that number by
// the rank's own input, so perturbing one element on one rank, with all ranks evaluating, must show it.
#include "parallel/comm/differentiable.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <vector>

#include "gradient_check.h"
#include "parallel/shard/split.h"
#include "parallel/tokens/column_input.h"
#include "parallel/tokens/context_attention.h"
#include "rank_processes.h"

namespace welkin::parallel {
namespace {

using OneTensor = std::function<at::Tensor(const at::Tensor&)>;

at::Tensor numbers(int64_t seed, at::IntArrayRef shape) {
  return at::sin(at::arange(c10::multiply_integers(shape), at::kDouble) * 1.7 + static_cast<double>(seed)).view(shape);
}

Group group_of_all(Connection& connection) {
  return connection.make_group("world", Mesh("dp", {.dp_replicate = connection.world_size()}).group_of(connection.rank(), kDp));
}

// The scalar: outputs times weights. `weights_seed` differs between ranks where each uses the output in its own way, and is the
// same where all do the same with the same output; then the number counts once, as a loss does.
struct ScalarOf {
  OneTensor function;
  bool same_on_all = false;

  at::Tensor own(const Group& all, const at::Tensor& x) const {
    const at::Tensor out = function(x);
    return (out * numbers(same_on_all ? 3 : 3 + 10 * all.group_rank(), out.sizes())).sum();
  }
  double total(const Group& all, const at::Tensor& x) const {
    const at::NoGradGuard no_grad;
    const at::Tensor value = own(all, x);
    return same_on_all ? value.item<double>() : all_reduce(all, value.view({1})).item<double>();
  }
};

// Every rank perturbs in turn; all evaluate.
at::Tensor numeric_gradient_of_all(const Group& all, const ScalarOf& scalar, const at::Tensor& x) {
  const double kStep = tests::kDifferenceStep;
  at::Tensor gradient = at::zeros_like(x);
  for (int64_t rank = 0; rank < all.size(); ++rank) {
    int64_t elements = rank == all.group_rank() ? x.numel() : 0;
    at::Tensor count = at::full({1}, elements, at::kLong);
    elements = all_reduce(all, count).item<int64_t>();
    for (int64_t i = 0; i < elements; ++i) {
      const auto value_at = [&](double step) {
        const at::Tensor moved = x.detach().clone();
        if (rank == all.group_rank()) moved.view({-1})[i] += step;
        return scalar.total(all, moved);
      };
      const double slope = (value_at(kStep) - value_at(-kStep)) / (2 * kStep);
      if (rank == all.group_rank()) gradient.view({-1})[i] = slope;
    }
  }
  return gradient;
}

void expect_gradient(const char* name, const Group& all, const ScalarOf& scalar, const at::Tensor& input) {
  const at::Tensor x = input.detach().clone().requires_grad_();
  scalar.own(all, x).backward();
  const at::Tensor numeric = numeric_gradient_of_all(all, scalar, input);
  const double scale = std::max(1.0, numeric.abs().max().item<double>());
  EXPECT_LE((x.grad() - numeric).abs().max().item<double>() / scale, tests::kDifferenceBound)
      << name << " on place " << all.group_rank();
}

const RankTest kPairs("differentiable_pairs", [](Connection& connection) {
  const Group all = group_of_all(connection);
  const int64_t place = all.group_rank();
  const int64_t tokens = 2 * all.size() + 1;
  const Lengths lengths = balanced_split(tokens, all.size());
  const int64_t own = lengths[static_cast<size_t>(place)];
  const at::Tensor mine = numbers(place, {2, own, 3});
  const at::Tensor same = numbers(7, {2, tokens, 3});
  expect_gradient("all_gather_autograd", all, {[&](const at::Tensor& x) { return all_gather_autograd(all, x, 1, lengths); }},
                  mine);
  expect_gradient("gather_from_group", all,
                  {[&](const at::Tensor& x) { return gather_from_group(all, x, 1, lengths); }, /*same_on_all=*/true}, mine);
  expect_gradient("reduce_scatter_autograd", all,
                  {[&](const at::Tensor& x) { return reduce_scatter_autograd(all, x, 1, lengths); }},
                  numbers(place, {2, tokens, 3}));
  expect_gradient("reduce_from_group", all, {[&](const at::Tensor& x) { return reduce_from_group(all, x); }, true},
                  numbers(place, {2, 3}));
  const Lengths heads(static_cast<size_t>(all.size()), 1);
  const AllToAll layout{.split_dim = 1, .split_lengths = heads, .join_dim = 2, .join_lengths = lengths};
  expect_gradient("all_to_all_autograd", all, {[&](const at::Tensor& x) { return all_to_all_autograd(all, x, layout); }},
                  numbers(place, {1, all.size(), own, 2}));

  // A replicated input: the derivative by the one value that all hold, which is the sum of the ranks' derivatives.
  const at::Tensor x = same.clone().requires_grad_();
  const at::Tensor weight = numbers(20 + place, {2, tokens, 3});
  (copy_to_group(all, x) * weight).sum().backward();
  EXPECT_TRUE(tests::close(x.grad(), all_reduce(all, weight), at::kDouble, all.size()));
  const at::Tensor y = same.clone().requires_grad_();
  const at::Tensor whole_weight = numbers(30, {2, tokens, 3});
  const int64_t offset = split_offset(lengths, place);
  (split_to_group(all, y, 1, lengths) * whole_weight.narrow(1, offset, own)).sum().backward();
  EXPECT_TRUE(at::equal(y.grad(), whole_weight));
});

// What a test multiplies by the weights of a member, by the matmuls of a ColumnInput where these take it.
struct ColumnMatmuls {
  ColumnInput& input;
  at::Tensor first, second;  // (4, 3)
  int own = 0;               // matmuls that the input made

  ColumnMatmuls(ColumnInput& of, int64_t place)
      : input(of), first(numbers(40 + place, {4, 3}).requires_grad_()), second(numbers(50 + place, {4, 3}).requires_grad_()) {}
  at::Tensor of(const at::Tensor& x, const at::Tensor& weight) {
    const auto made = input.matmul(x, weight);
    own += made ? 1 : 0;
    return made ? *made : at::linear(x, weight);
  }
};

// Two matmuls of one input that is gathered, each member's own: the gradient by the input, and by the weights, which no backward
// pass of aten sees, since the input is not kept.
const RankTest kGatheredColumns("gathered_columns", [](Connection& connection) {
  const Group all = group_of_all(connection);
  const int64_t place = all.group_rank();
  const Lengths lengths = balanced_split(2 * all.size() + 1, all.size());
  ColumnInput input(all, lengths);
  ColumnMatmuls matmuls(input, place);
  const at::Tensor mine = numbers(place, {2, lengths[static_cast<size_t>(place)], 3});
  const auto expect = [&](const char* what, const OneTensor& of_entered) {
    expect_gradient(what, all, {[&](const at::Tensor& x) { return of_entered(input.enter(x)); }}, mine);
  };
  expect("columns", [&](const at::Tensor& x) { return matmuls.of(x, matmuls.first) * matmuls.of(x, matmuls.second); });
  EXPECT_EQ(matmuls.own, 2) << "only with a gradient to come, and not where tokens are evaluated alone";
  const at::Tensor whole = all_gather_autograd(all, mine, 1, lengths);
  const at::Tensor first_again = matmuls.first.detach().clone().requires_grad_();
  const at::Tensor second_again = matmuls.second.detach().clone().requires_grad_();
  const ScalarOf written_out{[&](const at::Tensor& x) { return at::linear(x, first_again) * at::linear(x, second_again); }};
  written_out.own(all, whole).backward();
  EXPECT_TRUE(tests::close(matmuls.first.grad(), first_again.grad(), at::kDouble, whole.size(1)));
  EXPECT_TRUE(tests::close(matmuls.second.grad(), second_again.grad(), at::kDouble, whole.size(1)));
  EXPECT_FALSE(input.matmul(mine, matmuls.first).has_value()) << "what it did not gather is not its business";

  expect("one matmul", [&](const at::Tensor& x) { return matmuls.of(x, matmuls.first); });
  expect("another use of the input",
         [&](const at::Tensor& x) { return matmuls.of(x, matmuls.first) * at::cos(x.sum(-1, true)); });
  expect("a matmul without a gradient", [&](const at::Tensor& x) {
    matmuls.of(x, matmuls.second);
    return matmuls.of(x, matmuls.first);
  });
  const at::Tensor fixed = matmuls.first.detach();
  expect("a weight without a gradient", [&](const at::Tensor& x) { return matmuls.of(x, fixed); });
});

// The same where every member has all tokens: a replicated input gets the sum of the members' gradients.
const RankTest kReplicatedColumns("replicated_columns", [](Connection& connection) {
  const Group all = group_of_all(connection);
  ColumnInput input(all, std::nullopt);
  ColumnMatmuls matmuls(input, all.group_rank());
  const at::Tensor same = numbers(7, {2, 5, 3});
  const auto gradients = [&](const OneTensor& enter, bool twice) {
    matmuls.first.mutable_grad().reset();
    matmuls.second.mutable_grad().reset();
    const at::Tensor x = same.clone().requires_grad_();
    const at::Tensor entered = enter(x);
    at::Tensor out = matmuls.of(entered, matmuls.first) * matmuls.of(entered, matmuls.second);
    if (twice) out = out * at::cos(entered.sum(-1, true));
    (out * numbers(3 + 10 * all.group_rank(), out.sizes())).sum().backward();
    return std::vector<at::Tensor>{x.grad(), matmuls.first.grad().clone(), matmuls.second.grad().clone()};
  };
  for (const bool twice : {false, true}) {
    const auto found = gradients([&](const at::Tensor& x) { return input.enter(x); }, twice);
    const auto wanted = gradients([&](const at::Tensor& x) { return copy_to_group(all, x); }, twice);
    for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(tests::close(found[i], wanted[i], at::kDouble, all.size())) << i;
  }
  EXPECT_EQ(matmuls.own, 4);
});

// q, k, v stacked (3, B, H, tokens, D): one process against each way of splitting the tokens.
const RankTest kContext("context_attention", [](Connection& connection) {
  const Group all = group_of_all(connection);
  const int64_t tokens = 3 * all.size() + 1;
  const Lengths lengths = balanced_split(tokens, all.size());
  const int64_t offset = split_offset(lengths, all.group_rank());
  const int64_t own = lengths[static_cast<size_t>(all.group_rank())];
  const model::Body attention = [](model::Tensors in) {
    return model::Tensors{at::scaled_dot_product_attention(in.at(0), in.at(1), in.at(2))};
  };
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat, at::kBFloat16}) {
    const at::Tensor whole = numbers(1, {3, 2, 2 * all.size(), tokens, 4}).mul(2).to(dtype).requires_grad_();
    const at::Tensor weight = numbers(5, {2, 2 * all.size(), tokens, 4}).to(dtype);
    const at::Tensor wanted = attention({whole[0], whole[1], whole[2]}).at(0);
    (wanted * weight).sum().backward();
    for (const ContextMode mode : {ContextMode::AllGather, ContextMode::Ring, ContextMode::AllToAll}) {
      const at::Tensor part = whole.detach().narrow(3, offset, own).contiguous().requires_grad_();
      const model::Tensors qkv{part[0], part[1], part[2]};
      const at::Tensor out = mode == ContextMode::Ring        ? ring_attention(all, lengths, part[0], part[1], part[2])
                             : mode == ContextMode::AllGather ? all_gather_attention(all, lengths, qkv, attention).at(0)
                                                              : all_to_all_attention(all, lengths, qkv, attention).at(0);
      EXPECT_TRUE(tests::close(out, wanted.narrow(2, offset, own), dtype, tokens)) << context_mode_name(mode) << dtype;
      (out * weight.narrow(2, offset, own)).sum().backward();
      EXPECT_TRUE(tests::close(part.grad(), whole.grad().narrow(3, offset, own), dtype, tokens))
          << context_mode_name(mode) << dtype;
    }
  }
});

TEST(Differentiable, GradientsOnTwoRanks) { run_on_ranks("differentiable_pairs", 2); }
TEST(Differentiable, GradientsOnThreeRanks) { run_on_ranks("differentiable_pairs", 3); }
TEST(ColumnInput, GradientsOfSplitTokensOnTwoRanks) { run_on_ranks("gathered_columns", 2); }
TEST(ColumnInput, GradientsOfSplitTokensOnThreeRanks) { run_on_ranks("gathered_columns", 3); }
TEST(ColumnInput, GradientsOfReplicatedTokensOnTwoRanks) { run_on_ranks("replicated_columns", 2); }
TEST(ContextAttention, EqualsOneProcessOnTwoRanks) { run_on_ranks("context_attention", 2); }
TEST(ContextAttention, EqualsOneProcessOnThreeRanks) { run_on_ranks("context_attention", 3); }

}  // namespace
}  // namespace welkin::parallel
