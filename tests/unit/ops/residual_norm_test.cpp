// SPDX-License-Identifier: Apache-2.0
// The residual sum with its layer norm by the way of a GPU: the code of its kernels, warp by warp on the CPU, under autograd,
// against aten's operators in double.
#include "ops/residual_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/sin.h>
#include <gtest/gtest.h>

#include <array>

#include "ops/autocast.h"
#include "ops/residual_norm_kernel.h"
#include "tolerance.h"

namespace welkin::ops {
namespace {

// As the butterfly of a warp adds: every lane its neighbour's, at half the distance each time.
float lane_sum(std::array<float, kNormLanes> values) {
  for (size_t distance = kNormLanes / 2; distance > 0; distance /= 2) {
    const auto before = values;
    for (size_t lane = 0; lane < kNormLanes; ++lane) values[lane] = before[lane] + before[lane ^ distance];
  }
  return values[0];
}

template <typename Share>
float over_lanes(const Share& share) {
  std::array<float, kNormLanes> values{};
  for (int lane = 0; lane < kNormLanes; ++lane) values[static_cast<size_t>(lane)] = share(lane);
  return lane_sum(values);
}

template <typename Low>
void run_forward(const NormForward<Low>& call) {
  for (int64_t row = 0; row < call.rows; ++row) {
    const float mean = over_lanes([&](int lane) { return add_share(call, row, lane); }) / static_cast<float>(call.width);
    const float squares = over_lanes([&](int lane) { return deviation_share(call, row, mean, lane); });
    for (int lane = 0; lane < kNormLanes; ++lane) norm_share(call, row, mean, rstd_of(squares, call.width, call.epsilon), lane);
  }
}

template <typename Low>
void run_backward(const NormBackward<Low>& call, float* of_parameters) {
  for (int64_t row = 0; row < call.rows; ++row) {
    const NormSums sums{.plain = over_lanes([&](int lane) { return gradient_share(call, row, lane).plain; }),
                        .scaled = over_lanes([&](int lane) { return gradient_share(call, row, lane).scaled; })};
    for (int lane = 0; lane < kNormLanes; ++lane) backward_share(call, row, sums, lane);
  }
  std::vector<float> partials(static_cast<size_t>(norm_chunks(call.rows) * 2 * call.width));
  for (int64_t chunk = 0; chunk < norm_chunks(call.rows); ++chunk) {
    for (int64_t column = 0; column < call.width; ++column) {
      ColumnSums total;
      for (int first = 0; first < kNormRows; ++first) {
        const ColumnSums share = column_share(call, chunk, column, first);
        total.weight += share.weight;
        total.bias += share.bias;
      }
      partials[static_cast<size_t>(chunk * 2 * call.width + column)] = total.weight;
      partials[static_cast<size_t>((chunk * 2 + 1) * call.width + column)] = total.bias;
    }
  }
  for (int which = 0; which < 2; ++which) {
    for (int64_t column = 0; column < call.width; ++column) {
      of_parameters[which * call.width + column] =
          chunk_total(partials.data(), norm_chunks(call.rows), call.width, which, column);
    }
  }
}

template <typename Body>
void with_low_type(at::ScalarType type, const Body& body) {
  if (type == at::kFloat) return body(float{});
  body(c10::BFloat16{});
}

at::Tensor forward_here(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight, const at::Tensor& bias,
                        double epsilon, NormState& state) {
  const int64_t width = x.size(-1), rows = x.numel() / width;
  const at::Tensor normed = at::empty_like(branch);
  state = {.sum = at::empty_like(x), .mean = at::empty({rows}, x.options()), .rstd = at::empty({rows}, x.options())};
  with_low_type(branch.scalar_type(), [&](auto low) {
    using Low = decltype(low);
    run_forward(NormForward<Low>{rows, width, static_cast<float>(epsilon), x.const_data_ptr<float>(),
                                 branch.const_data_ptr<Low>(), weight.const_data_ptr<float>(), bias.const_data_ptr<float>(),
                                 state.sum.mutable_data_ptr<float>(), normed.mutable_data_ptr<Low>(),
                                 state.mean.mutable_data_ptr<float>(), state.rstd.mutable_data_ptr<float>()});
  });
  return normed;
}

NormGradients backward_here(const at::Tensor& of_normed, const at::Tensor& of_sum, const NormState& state,
                            const at::Tensor& weight) {
  const int64_t width = state.sum.size(-1), rows = state.sum.numel() / width;
  const bool is_single = of_normed.scalar_type() == at::kFloat;
  const at::Tensor of_x = at::empty_like(state.sum), of_parameters = at::empty({2, width}, state.sum.options());
  const at::Tensor of_branch = is_single ? of_x : at::empty_like(of_normed);
  with_low_type(of_normed.scalar_type(), [&](auto low) {
    using Low = decltype(low);
    run_backward(
        NormBackward<Low>{rows, width, of_normed.const_data_ptr<Low>(),
                          of_sum.defined() ? of_sum.const_data_ptr<float>() : nullptr, state.sum.const_data_ptr<float>(),
                          state.mean.const_data_ptr<float>(), state.rstd.const_data_ptr<float>(), weight.const_data_ptr<float>(),
                          of_x.mutable_data_ptr<float>(), is_single ? nullptr : of_branch.mutable_data_ptr<Low>()},
        of_parameters.mutable_data_ptr<float>());
  });
  return {of_x, of_branch, of_parameters.select(0, 0), of_parameters.select(0, 1)};
}

class ResidualNormParts : public ::testing::Test {
 protected:
  ResidualNormParts() { device_norm() = {.device = c10::kCPU, .forward = &forward_here, .backward = &backward_here}; }
  ~ResidualNormParts() override { device_norm() = {}; }
};

class ResidualNormOnCpu : public ResidualNormParts,
                          public ::testing::WithParamInterface<std::tuple<int64_t, int64_t, at::ScalarType>> {};

at::Tensor norm_waves(at::IntArrayRef shape, double phase) {
  return at::sin(at::arange(c10::multiply_integers(shape), at::kDouble) * 0.37 + phase).view(shape);
}

struct NormCase {
  at::Tensor x, branch, weight, bias;

  NormCase(int64_t rows, int64_t width)
      : x(norm_waves({2, rows, width}, 0)),
        branch(norm_waves({2, rows, width}, 1).mul(0.5).to(at::kBFloat16).to(at::kDouble)),
        weight(norm_waves({width}, 2).add(1.5)),
        bias(norm_waves({width}, 3)) {}

  std::vector<at::Tensor> leaves(at::ScalarType type, at::ScalarType low) const {
    return {x.to(type, false, true).requires_grad_(), branch.to(low, false, true).requires_grad_(),
            weight.to(type, false, true).requires_grad_(), bias.to(type, false, true).requires_grad_()};
  }
};

TEST_P(ResidualNormOnCpu, EqualsAtenForwardAndBackward) {
  const auto [rows, width, low] = GetParam();
  const NormCase inputs(rows, width);
  const std::vector<at::Tensor> wanted_in = inputs.leaves(at::kDouble, at::kDouble), got_in = inputs.leaves(at::kFloat, low);
  const ResidualNorm wanted = residual_norm_reference(wanted_in[0], wanted_in[1], wanted_in[2], wanted_in[3], 1e-6);
  ResidualNorm got;
  {
    const AutocastGuard autocast(at::kCPU, low == at::kFloat ? std::nullopt : std::optional(low));
    got = residual_norm(got_in[0], got_in[1], got_in[2], got_in[3], 1e-6);
  }
  EXPECT_EQ(got.normed.scalar_type(), low);
  EXPECT_TRUE(tests::close(got.sum, wanted.sum, at::kFloat, 2));
  EXPECT_TRUE(tests::close(got.normed, wanted.normed, low, width));
  const auto score = [](const ResidualNorm& out) {
    return out.sum.mul(norm_waves(out.sum.sizes(), 4).to(out.sum.scalar_type())).sum() +
           out.normed.mul(norm_waves(out.sum.sizes(), 5).to(out.normed.scalar_type())).sum();
  };
  score(wanted).backward();
  score(got).backward();
  for (size_t i = 0; i < wanted_in.size(); ++i) {
    EXPECT_TRUE(tests::close(got_in[i].grad(), wanted_in[i].grad(), low, i < 2 ? width : 2 * rows)) << i;
    EXPECT_EQ(got_in[i].grad().scalar_type(), got_in[i].scalar_type()) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, ResidualNormOnCpu,
                         ::testing::Values(std::tuple(1, 2, at::kFloat), std::tuple(3, 31, at::kFloat),
                                           std::tuple(5, 33, at::kBFloat16), std::tuple(7, 384, at::kFloat),
                                           std::tuple(260, 40, at::kFloat), std::tuple(300, 64, at::kBFloat16)),
                         [](const auto& shape) {
                           return std::to_string(std::get<0>(shape.param)) + "x" + std::to_string(std::get<1>(shape.param)) +
                                  (std::get<2>(shape.param) == at::kFloat ? "float" : "bfloat16");
                         });

TEST_F(ResidualNormParts, OneOfTheResultsMayBeUnused) {
  const NormCase inputs(4, 48);
  for (const bool uses_sum : {true, false}) {
    const std::vector<at::Tensor> wanted_in = inputs.leaves(at::kDouble, at::kDouble),
                                  got_in = inputs.leaves(at::kFloat, at::kFloat);
    const auto score = [&](const ResidualNorm& out) { return (uses_sum ? out.sum : out.normed).square().sum(); };
    score(residual_norm_reference(wanted_in[0], wanted_in[1], wanted_in[2], wanted_in[3], 1e-6)).backward();
    score(residual_norm(got_in[0], got_in[1], got_in[2], got_in[3], 1e-6)).backward();
    for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(tests::close(got_in[i].grad(), wanted_in[i].grad(), at::kFloat, 48)) << uses_sum;
  }
}

TEST_F(ResidualNormParts, OtherTypesAndDevicesTakeAtensOperators) {
  const NormCase inputs(4, 48);
  const ResidualNorm got = residual_norm(inputs.x, inputs.branch, inputs.weight, inputs.bias, 1e-6);
  const ResidualNorm wanted = residual_norm_reference(inputs.x, inputs.branch, inputs.weight, inputs.bias, 1e-6);
  EXPECT_TRUE(at::equal(got.normed, wanted.normed) && at::equal(got.sum, wanted.sum));
  device_norm().device = c10::kCUDA;
  const at::Tensor x = inputs.x.to(at::kFloat), branch = inputs.branch.to(at::kFloat), weight = inputs.weight.to(at::kFloat),
                   bias = inputs.bias.to(at::kFloat);
  EXPECT_TRUE(at::equal(residual_norm(x, branch, weight, bias, 1e-6).normed,
                        residual_norm_reference(x, branch, weight, bias, 1e-6).normed));
}

TEST(NormChunks, CoverAllRows) {
  for (const int64_t rows : {1L, 255L, 256L, 257L, 65536L, 65537L, 1000000L}) {
    EXPECT_GE(norm_chunk(rows) * norm_chunks(rows), rows);
    EXPECT_LT(norm_chunk(rows) * (norm_chunks(rows) - 1), rows);
    EXPECT_LE(norm_chunks(rows), kNormChunks);
  }
}

}  // namespace
}  // namespace welkin::ops
