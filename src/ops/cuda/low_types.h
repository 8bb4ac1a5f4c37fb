// SPDX-License-Identifier: Apache-2.0
// Requirements of this library's kernels on their tensors: a supported type of activations, and
// memory without gaps on one device.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace welkin::ops {

// Calls body(a value of the CUDA type of `type`). `name`: the operator, for the error.
template <typename Body>
void for_low_type(const char* name, at::ScalarType type, const Body& body) {
  switch (type) {
    case at::kFloat:
      return body(float{});
    case at::kHalf:
      return body(__half{});
    case at::kBFloat16:
      return body(__nv_bfloat16{});
    default:
      TORCH_CHECK(false, name, ": float32, float16 or bfloat16, not ", type);
  }
}

inline void check_places(const char* name, const at::Tensor& first, at::TensorList others) {
  for (const at::Tensor& other : others) {
    TORCH_CHECK(other.device() == first.device() && other.is_contiguous(), name, ": all without gaps on one device");
  }
}

}  // namespace welkin::ops
