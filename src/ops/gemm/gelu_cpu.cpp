// SPDX-License-Identifier: Apache-2.0
// The bias gradient is summed by blocks of rows, then over the blocks: the order depends on the shape, not on the threads.
#include "ops/gemm/gelu_cpu.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <vector>

#include "ops/cpu/elementwise/gelu_kernel.h"

namespace welkin::ops {
namespace {

constexpr int64_t kGeluRowsPerTask = 32;
constexpr int64_t kColumnsPerTask = 512;  // of the last sums

// Calls body(T{}, kernel) with the kernels' type for that of x.
template <typename Body>
void with_kernel(const at::Tensor& x, Body&& body) {
  const GeluKernels& kernels = gelu_kernels(instruction_set());
  if (x.scalar_type() == at::kFloat) return body(float{}, kernels.of_float);
  TORCH_CHECK(x.scalar_type() == at::kBFloat16, "gelu on a CPU takes float32 and bfloat16, not ", x.scalar_type());
  body(Bf16{}, kernels.of_bf16);
}

// Calls body(task, begin, end) for blocks of rows.
template <typename Body>
void for_row_blocks(int64_t rows, Body&& body) {
  at::parallel_for(0, (rows + kGeluRowsPerTask - 1) / kGeluRowsPerTask, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      body(task, task * kGeluRowsPerTask, std::min(rows, (task + 1) * kGeluRowsPerTask));
    }
  });
}

at::Tensor forward_on_cpu(const at::Tensor& x, const at::Tensor& bias) {
  RECORD_FUNCTION("welkin::bias_gelu", std::vector<c10::IValue>());
  at::Tensor out = at::empty_like(x);
  with_kernel(x, [&](auto type, const auto& kernel) {
    using T = decltype(type);
    GeluForward<T> call;
    call.width = x.size(-1);
    call.rows = x.numel() / call.width;
    call.x = static_cast<const T*>(x.const_data_ptr());
    call.bias = bias.const_data_ptr<float>();
    call.out = static_cast<T*>(out.mutable_data_ptr());
    for_row_blocks(call.rows, [&](int64_t /*task*/, int64_t begin, int64_t end) { kernel.forward(call, begin, end); });
  });
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

// The gradient of x overwrites the incoming gradient: its memory is in the cache, and a third less is written.
GeluGradients backward_on_cpu(const at::Tensor& grad_out, const at::Tensor& x, const at::Tensor& bias) {
  RECORD_FUNCTION("welkin::bias_gelu_backward", std::vector<c10::IValue>());
  TORCH_CHECK(grad_out.scalar_type() == x.scalar_type() && grad_out.numel() == x.numel(), "bias_gelu: a gradient of its result");
  const int64_t width = x.size(-1), rows = x.numel() / width;
  const at::Tensor partials = at::empty({(rows + kGeluRowsPerTask - 1) / kGeluRowsPerTask, width}, bias.options());
  GeluGradients gradients{.out = at::empty_like(x), .grad_x = grad_out, .grad_bias = at::empty({width}, bias.options())};
  with_kernel(x, [&](auto type, const auto& kernel) {
    using T = decltype(type);
    GeluBackward<T> call;
    call.rows = rows;
    call.width = width;
    call.grad_out = static_cast<const T*>(grad_out.const_data_ptr());
    call.x = static_cast<const T*>(x.const_data_ptr());
    call.bias = bias.const_data_ptr<float>();
    call.out = static_cast<T*>(gradients.out.mutable_data_ptr());
    call.grad_x = static_cast<T*>(gradients.grad_x.mutable_data_ptr());
    for_row_blocks(rows, [&, sums = partials.mutable_data_ptr<float>()](int64_t task, int64_t begin, int64_t end) {
      kernel.backward(call, begin, end, sums + task * width);
    });
  });
  sum_partials(partials, gradients.grad_bias);
  return gradients;
}

}  // namespace

const DeviceGelu& cpu_gelu() {
  static const DeviceGelu table{.device = c10::kCPU, .forward = &forward_on_cpu, .backward = &backward_on_cpu};
  return table;
}

}  // namespace welkin::ops
