// SPDX-License-Identifier: Apache-2.0
// The launches of ops/bias_gelu_kernel.h on a CPU: the code of the kernels block by block and thread by thread, and a table of
// them in the place of libwelkin_cuda.so's.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/util/BFloat16.h>

#include <vector>

#include "ops/bias_gelu_kernel.h"
#include "ops/gelu_linear.h"

namespace welkin::tests {

// While alive, layers of the CPU take the way of a GPU from a product through its bias and GELU to the next product.
class BiasGeluOnCpu {
 public:
  BiasGeluOnCpu() : before_(ops::device_gelu()) {
    ops::device_gelu() = {.device = c10::kCPU, .forward = &forward, .backward = &backward};
    calls() = 0;
  }
  ~BiasGeluOnCpu() { ops::device_gelu() = before_; }
  BiasGeluOnCpu(const BiasGeluOnCpu&) = delete;
  BiasGeluOnCpu& operator=(const BiasGeluOnCpu&) = delete;

  // Of forward and backward together, since the newest of these objects was made.
  static int64_t& calls() {
    static int64_t count = 0;
    return count;
  }

 private:
  static constexpr int kThreads = 64;

  template <typename Low>
  static void run_forward(const ops::GeluForward<Low>& call) {
    for (int64_t row = 0; row < call.rows; ++row) {
      for (int thread = 0; thread < kThreads; ++thread) ops::gelu_share(call, row, thread, kThreads);
    }
  }

  template <typename Low>
  static void run_backward(const ops::GeluBackward<Low>& call, float* of_bias) {
    const int64_t chunks = ops::gelu_chunks(call.rows);
    std::vector<float> partials(static_cast<size_t>(chunks * call.width));
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      for (int64_t column = 0; column < call.width; ++column) {
        float& total = partials[static_cast<size_t>(chunk * call.width + column)];
        for (int first = 0; first < ops::kGeluRows; ++first) total += ops::gelu_backward_share(call, chunk, column, first);
      }
    }
    for (int64_t column = 0; column < call.width; ++column) {
      of_bias[column] = ops::gelu_bias_total(partials.data(), chunks, call.width, column);
    }
  }

  template <typename Body>
  static void with_type(at::ScalarType type, const Body& body) {
    if (type == at::kFloat) return body(float{});
    TORCH_CHECK(type == at::kBFloat16, "the twin is made for float32 and bfloat16");
    body(c10::BFloat16{});
  }

  static at::Tensor forward(const at::Tensor& x, const at::Tensor& bias) {
    ++calls();
    const at::Tensor out = at::empty_like(x);
    with_type(x.scalar_type(), [&](auto low) {
      using Low = decltype(low);
      const int64_t width = x.size(-1);
      run_forward(ops::GeluForward<Low>{x.numel() / width, width, x.const_data_ptr<Low>(), bias.const_data_ptr<float>(),
                                        out.mutable_data_ptr<Low>()});
    });
    return out;
  }

  static ops::GeluGradients backward(const at::Tensor& of_out, const at::Tensor& x, const at::Tensor& bias) {
    ++calls();
    const ops::GeluGradients gradients{
        .out = at::empty_like(x), .of_x = at::empty_like(x), .of_bias = at::empty(bias.sizes(), bias.options())};
    with_type(x.scalar_type(), [&](auto low) {
      using Low = decltype(low);
      const int64_t width = x.size(-1);
      run_backward(ops::GeluBackward<Low>{x.numel() / width, width, of_out.const_data_ptr<Low>(), x.const_data_ptr<Low>(),
                                          bias.const_data_ptr<float>(), gradients.out.mutable_data_ptr<Low>(),
                                          gradients.of_x.mutable_data_ptr<Low>()},
                   gradients.of_bias.mutable_data_ptr<float>());
    });
    return gradients;
  }

  ops::DeviceGelu before_;
};

}  // namespace welkin::tests
