// SPDX-License-Identifier: Apache-2.0
// Matmuls of large float32 matrices on a CPU with tiles, if operands may be split in two parts (Float32Precision::High of
// ops/gemm/gemm_provider.h; ops/cpu/matrix/matrix_kernel.h). Results do not depend on the number of threads.
#pragma once

#include <ATen/core/Tensor.h>

namespace welkin::ops {

// True if that precision is set, and for two matrices with rows or columns without gaps whose matmul is worth the packing.
bool amx_matmul_supports(const at::Tensor& a_MK, const at::Tensor& b_KN);

// a b + bias; bias (N) or undefined. Not differentiable: for our own gradients, which are differentiable once.
at::Tensor amx_matmul(const at::Tensor& a_MK, const at::Tensor& b_KN, const at::Tensor& bias_N = {});

}  // namespace welkin::ops
