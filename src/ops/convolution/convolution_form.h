// SPDX-License-Identifier: Apache-2.0
// Our own form of both convolutions on tensors, forward and gradients: the CPU kernels' view of what
// ops/convolution/convolution.h describes.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <vector>

#include "ops/convolution/convolution.h"

namespace welkin::ops {

enum class BoxWay { Down, Up };  // from the fine grid to the coarse one, or back

struct BoxCall {
  BoxStride rule;
  BoxKink kink;
  BoxWay way = BoxWay::Down;
};

// All x of one type, float32, bfloat16 or (where products are widened, ops/products/low_product.h) float16; weight and bias float32. Shapes that do not fit are not
// taken: aten says what is wrong with them.
bool convolution_cpu_takes(at::TensorList x, const at::Tensor& weight, BoxWay way, const at::Tensor& bias = {});

struct BoxOperands {
  std::vector<at::Tensor> x;
  at::Tensor weight;
};

at::Tensor convolution_cpu_forward(const BoxCall& call, const BoxOperands& operands, const at::Tensor& bias);

struct BoxGradients {
  std::vector<at::Tensor> x;
  at::Tensor weight, bias;
};
struct BoxWanted {
  bool x = true, weight = true, bias = true;
};

// From the gradient after the kink; `out` is the result, needed where there is a kink.
BoxGradients convolution_cpu_backward(const BoxCall& call, const BoxOperands& operands, const at::Tensor& out,
                                      const at::Tensor& grad, const BoxWanted& wanted);

}  // namespace welkin::ops
