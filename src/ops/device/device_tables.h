// SPDX-License-Identifier: Apache-2.0
// The signatures of an operator's kernels on another device than the CPU. A table whose functions are null has no kernels.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>

#include <vector>

#include "ops/arithmetic/device_update_kernel.h"
#include "ops/arithmetic/error_sums_kernel.h"

namespace welkin::ops {

struct UpdateSpan;  // ops/update/fused_update.h
struct FloatSpan;

struct GeluGradients {
  at::Tensor out;  // gelu(x + bias) again
  at::Tensor grad_x, grad_bias;
};

// All without gaps: x (..., width) float32, float16 or bfloat16, its results and their gradient alike; bias (width) and its
// gradient float32.
struct DeviceGelu {
  c10::DeviceType device = c10::kCUDA;  // whose tensors the functions take
  at::Tensor (*forward)(const at::Tensor& x, const at::Tensor& bias) = nullptr;
  // grad_out may be written over.
  GeluGradients (*backward)(const at::Tensor& grad_out, const at::Tensor& x, const at::Tensor& bias) = nullptr;
};

struct LeakyReluGradients {
  at::Tensor grad_x, grad_bias;
};

// Boxes float32, float16 or bfloat16, channels-last without gaps; bias and its gradient float32.
struct DeviceLeakyRelu {
  c10::DeviceType device = c10::kCUDA;  // whose tensors the functions take
  void (*forward)(const at::Tensor& x, const at::Tensor& bias, double slope) = nullptr;
  LeakyReluGradients (*backward)(const at::Tensor& grad_out, const at::Tensor& out, double slope) = nullptr;
  // Sums over all but the channels, which are the last axis or those of a channels-last box: (channels) float32.
  at::Tensor (*column_sums)(const at::Tensor& values) = nullptr;
};

// Boxes and blocks float32, float16 or bfloat16, channels-last without gaps (ops/arithmetic/box_blocks_kernel.h).
struct DeviceBlocks {
  c10::DeviceType device = c10::kCUDA;  // whose tensors the functions take
  at::Tensor (*to_blocks)(const at::Tensor& x) = nullptr;
  // bias (C) float32, undefined: none; slope of the leaky ReLU behind it, which there is none without a bias.
  at::Tensor (*from_blocks)(const at::Tensor& blocks, const at::Tensor& bias, double slope) = nullptr;
};

// What the backward pass needs of the forward one.
struct NormState {
  at::Tensor sum;         // float32
  at::Tensor mean, rstd;  // (rows) float32
};
struct NormGradients {
  at::Tensor grad_x, grad_branch, grad_weight, grad_bias;
};

// All without gaps: x float32, branch and `normed` of one type, float32, float16 or bfloat16. `branch` may be undefined: the sum
// is x itself then, and there is no gradient of a branch. `of_sum` may be undefined.
struct DeviceNorm {
  c10::DeviceType device = c10::kCUDA;  // whose tensors the functions take
  at::Tensor (*forward)(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight, const at::Tensor& bias,
                        double epsilon, at::ScalarType type, NormState& state) = nullptr;
  NormGradients (*backward)(const at::Tensor& grad_normed, const at::Tensor& of_sum, const NormState& state,
                            const at::Tensor& weight, bool has_branch) = nullptr;
};

struct DeviceErrors {
  c10::DeviceType device = c10::kCUDA;  // whose tensors the functions take, of any strides
  at::Tensor (*forward)(const at::Tensor& prediction, const at::Tensor& target, ErrorKind kind, double rate) = nullptr;
  // grad_sums (B, 2) without gaps.
  at::Tensor (*backward)(const at::Tensor& grad_sums, const at::Tensor& prediction, const at::Tensor& target, ErrorKind kind,
                         double rate) = nullptr;
};

// All () float32 on the device of the runs.
struct UpdateScalars {
  at::Tensor rate;
  at::Tensor gradient_scale;  // what a gradient is multiplied by: 1 / loss scale, times what clipping takes away
  at::Tensor found_inf;       // 1: weights and states stay as they are
  at::Tensor steps;           // Adam: number of this update, from 1
};

struct DeviceUpdate {
  c10::DeviceType device = c10::kCUDA;  // whose tensors the functions take
  void (*adam)(const std::vector<UpdateSpan>& runs, const AdamSettings& settings, const UpdateScalars& scalars) = nullptr;
  void (*sgd)(const std::vector<UpdateSpan>& runs, const SgdSettings& settings, const UpdateScalars& scalars) = nullptr;
  // () float32 2-norm of all runs, which are of this device. Not finite where an element is not, and where the square of one is
  // beyond float32. The same bits in every run.
  at::Tensor (*norm)(const std::vector<FloatSpan>& runs, c10::Device device) = nullptr;
};

}  // namespace welkin::ops
