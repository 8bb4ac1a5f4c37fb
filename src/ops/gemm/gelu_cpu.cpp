// SPDX-License-Identifier: Apache-2.0
// The bias gradient is summed by blocks of rows, then over the blocks: the order depends on the shape, not on the threads.
#include "ops/gemm/gelu_cpu.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include "ops/cpu/elementwise/gelu_kernel.h"

namespace welkin::ops {
namespace {

constexpr int64_t kGeluRowsPerTask = 32;
constexpr int64_t kColumnsPerTask = 512;  // of the last sums

// Calls body(task, begin, end) for blocks of rows.
template <typename Body>
void for_row_blocks(int64_t rows, Body&& body) {
  at::parallel_for(0, (rows + kGeluRowsPerTask - 1) / kGeluRowsPerTask, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      body(task, task * kGeluRowsPerTask, std::min(rows, (task + 1) * kGeluRowsPerTask));
    }
  });
}

template <typename T, typename Operand>
at::Tensor forward(const at::Tensor& x, const at::Tensor& bias, const GeluKernel<T, Operand>& kernel) {
  RECORD_FUNCTION("welkin::bias_gelu", std::vector<c10::IValue>());
  at::Tensor out = at::empty_like(x, x.options().dtype(std::is_same_v<Operand, float> ? at::kFloat : x.scalar_type()));
  GeluForward<T, Operand> call;
  call.width = x.size(-1);
  call.rows = x.numel() / call.width;
  call.x = static_cast<const T*>(x.const_data_ptr());
  call.bias = bias.const_data_ptr<float>();
  call.out = static_cast<Operand*>(out.mutable_data_ptr());
  for_row_blocks(call.rows, [&](int64_t /*task*/, int64_t begin, int64_t end) { kernel.forward(call, begin, end); });
  return out;
}

// Sums partials (tasks, width) into grad_bias, each column in order.
void sum_partials(const at::Tensor& partials, at::Tensor& grad_bias) {
  const int64_t tasks = partials.size(0), width = partials.size(1);
  const float* from = partials.const_data_ptr<float>();
  float* to = grad_bias.mutable_data_ptr<float>();
  at::parallel_for(0, width, kColumnsPerTask, [&](int64_t begin, int64_t end) {
    std::fill(to + begin, to + end, 0.0F);
    for (int64_t task = 0; task < tasks; ++task) {
      for (int64_t column = begin; column < end; ++column) to[column] += from[task * width + column];
    }
  });
}

// What is of its type overwrites the incoming gradient: its memory is in the cache, and a third less is written.
template <typename T, typename Operand>
GeluGradients backward(const at::Tensor& grad_out, const at::Tensor& x, const at::Tensor& bias,
                       const GeluKernel<T, Operand>& kernel) {
  RECORD_FUNCTION("welkin::bias_gelu_backward", std::vector<c10::IValue>());
  const int64_t width = x.size(-1), rows = x.numel() / width;
  const at::Tensor partials = at::empty({(rows + kGeluRowsPerTask - 1) / kGeluRowsPerTask, width}, bias.options());
  const bool is_one_type = std::is_same_v<T, Operand>;
  GeluGradients gradients{.out = is_one_type ? at::empty_like(x) : grad_out,
                          .grad_x = is_one_type ? grad_out : at::empty_like(x),
                          .grad_bias = at::empty({width}, bias.options())};
  GeluBackward<T, Operand> call;
  call.rows = rows;
  call.width = width;
  call.grad_out = static_cast<const Operand*>(grad_out.const_data_ptr());
  call.x = static_cast<const T*>(x.const_data_ptr());
  call.bias = bias.const_data_ptr<float>();
  call.out = static_cast<Operand*>(gradients.out.mutable_data_ptr());
  call.grad_x = static_cast<T*>(gradients.grad_x.mutable_data_ptr());
  for_row_blocks(rows, [&, sums = partials.mutable_data_ptr<float>()](int64_t task, int64_t begin, int64_t end) {
    kernel.backward(call, begin, end, sums + task * width);
  });
  sum_partials(partials, gradients.grad_bias);
  return gradients;
}

void expect_bf16(const at::Tensor& x) {
  TORCH_CHECK(x.scalar_type() == at::kBFloat16, "gelu on a CPU takes float32 and bfloat16, not ", x.scalar_type());
}

void expect_gradient(const at::Tensor& grad_out, const at::Tensor& x, at::ScalarType type) {
  TORCH_CHECK(grad_out.scalar_type() == type && grad_out.numel() == x.numel(), "bias_gelu: a gradient of its result");
}

at::Tensor forward_on_cpu(const at::Tensor& x, const at::Tensor& bias) {
  const GeluKernels& kernels = gelu_kernels(instruction_set());
  if (x.scalar_type() == at::kFloat) return forward(x, bias, kernels.of_float);
  expect_bf16(x);
  return forward(x, bias, kernels.of_bf16);
}

GeluGradients backward_on_cpu(const at::Tensor& grad_out, const at::Tensor& x, const at::Tensor& bias) {
  const GeluKernels& kernels = gelu_kernels(instruction_set());
  expect_gradient(grad_out, x, x.scalar_type());
  if (x.scalar_type() == at::kFloat) return backward(grad_out, x, bias, kernels.of_float);
  expect_bf16(x);
  return backward(grad_out, x, bias, kernels.of_bf16);
}

}  // namespace

const DeviceGelu& cpu_gelu() {
  static const DeviceGelu table{.device = c10::kCPU, .forward = &forward_on_cpu, .backward = &backward_on_cpu};
  return table;
}

at::Tensor widened_bias_gelu(const at::Tensor& x, const at::Tensor& bias) {
  expect_bf16(x);
  return forward(x, bias, gelu_kernels(instruction_set()).of_widened);
}

GeluGradients widened_bias_gelu_backward(const at::Tensor& grad_out, const at::Tensor& x, const at::Tensor& bias) {
  expect_bf16(x);
  expect_gradient(grad_out, x, at::kFloat);
  return backward(grad_out, x, bias, gelu_kernels(instruction_set()).of_widened);
}

}  // namespace welkin::ops
