// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/bf16_casts.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <vector>

#include "ops/cpu/elementwise/convert_kernel.h"

namespace welkin::ops {
namespace {

constexpr int64_t kValuesPerTask = 1 << 15;

bool is_for_kernel(const at::Tensor& x, at::ScalarType type) {
  const bool makes_graph = at::GradMode::is_enabled() && x.requires_grad();
  return type == at::kBFloat16 && x.is_cpu() && x.is_non_overlapping_and_dense() && !makes_graph;
}

const Bf16* bf16_of(const at::Tensor& x) { return static_cast<const Bf16*>(x.const_data_ptr()); }

// Calls kernel(from, to, count) for parts of the values.
template <typename From>
void convert_values(void (*kernel)(const From*, float*, int64_t), const From* from, float* to, int64_t count) {
  at::parallel_for(0, count, kValuesPerTask, [=](int64_t begin, int64_t end) { kernel(from + begin, to + begin, end - begin); });
}

void round_values(const at::Tensor& x, at::Tensor& to) {
  convert_values(convert_kernel(instruction_set()).round, x.const_data_ptr<float>(), to.mutable_data_ptr<float>(), x.numel());
}

}  // namespace

at::Tensor widened(const at::Tensor& x) {
  if (!is_for_kernel(x, x.scalar_type())) return x.to(at::kFloat);
  at::Tensor wide = at::empty_like(x, x.options().dtype(at::kFloat));
  convert_values(convert_kernel(instruction_set()).widen, bf16_of(x), wide.mutable_data_ptr<float>(), x.numel());
  return wide;
}

at::Tensor narrowed(const at::Tensor& x, at::ScalarType type, const at::Tensor& bias) {
  const bool has_bias = bias.defined();
  const bool bias_fits = !has_bias || (bias.dim() == 1 && bias.size(0) == x.size(-1) && bias.is_contiguous() &&
                                       bias.scalar_type() == at::kFloat && x.is_contiguous());
  if (!bias_fits || x.scalar_type() != at::kFloat || !is_for_kernel(x, type)) return (has_bias ? x + bias : x).to(type);
  at::Tensor narrow = at::empty_like(x, x.options().dtype(type));
  if (x.numel() == 0) return narrow;
  const auto kernel = convert_kernel(instruction_set()).narrow;
  const int64_t width = has_bias ? x.size(-1) : 1;
  const float* row = has_bias ? bias.const_data_ptr<float>() : nullptr;
  at::parallel_for(
      0, x.numel() / width, (kValuesPerTask + width - 1) / width,
      [=, from = x.const_data_ptr<float>(), into = static_cast<Bf16*>(narrow.mutable_data_ptr())](int64_t begin, int64_t end) {
        kernel(from + begin * width, row, into + begin * width, end - begin, width);
      });
  return narrow;
}

at::Tensor rounded(const at::Tensor& x, at::ScalarType type) {
  if (x.scalar_type() != at::kFloat || !is_for_kernel(x, type)) return x.to(type).to(at::kFloat);
  at::Tensor wide = at::empty_like(x);
  round_values(x, wide);
  return wide;
}

at::Tensor rounded_in_place(const at::Tensor& x, at::ScalarType type) {
  if (x.scalar_type() != at::kFloat || !is_for_kernel(x, type)) return rounded(x, type);
  at::Tensor same = x;
  round_values(x, same);
  return same;
}

at::Tensor rounded_rows(at::TensorList parts, at::ScalarType type) {
  const at::Tensor& first = parts.front();
  const auto is_like_first = [&](const at::Tensor& part) {
    return part.scalar_type() == at::kFloat && part.is_contiguous() && is_for_kernel(part, type) && part.dim() > 0 &&
           part.dim() == first.dim() && part.sizes().slice(1) == first.sizes().slice(1);
  };
  if (!std::ranges::all_of(parts, is_like_first)) return rounded(at::cat(parts), type);
  std::vector<int64_t> sizes = first.sizes().vec();
  sizes[0] = 0;
  for (const at::Tensor& part : parts) sizes[0] += part.size(0);
  at::Tensor joint = at::empty(sizes, first.options());
  int64_t row = 0;
  for (const at::Tensor& part : parts) {
    at::Tensor rows = joint.narrow(0, row, part.size(0));
    round_values(part, rows);
    row += part.size(0);
  }
  return joint;
}

}  // namespace welkin::ops
