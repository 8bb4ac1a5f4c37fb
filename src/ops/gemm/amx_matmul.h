// SPDX-License-Identifier: Apache-2.0
// Matmuls of large matrices of float32 on a CPU with tiles, where operands may be taken in two parts (Float32Precision::High of
// ops/gemm/gemm_provider.h; ops/cpu/matrix/matrix_kernel.h). Results do not depend on the number of threads.
#pragma once

#include <ATen/core/Tensor.h>

namespace welkin::ops {

// Where it is to be so: two matrices of one depth, each with rows or columns without gaps, whose matmul is worth the packing.
bool amx_matmul_supports(const at::Tensor& a_MK, const at::Tensor& b_KN);

// a b + bias; bias (N) or undefined. Not differentiable: part of own gradients, which refuse to be differentiated once more.
at::Tensor amx_matmul(const at::Tensor& a_MK, const at::Tensor& b_KN, const at::Tensor& bias_N = {});

}  // namespace welkin::ops
