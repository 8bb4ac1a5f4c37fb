// SPDX-License-Identifier: Apache-2.0
// The signatures of an operator's kernels on devices other than the CPU. A table of null functions has no kernels.
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
  at::Tensor out;  // the recomputed gelu(x + bias)
  at::Tensor grad_x, grad_bias;
};

// All without gaps: x (..., width) float32, float16 or bfloat16, results and their gradient in the same type; bias (width) and
// its gradient float32.
struct DeviceGelu {
  c10::DeviceType device = c10::kCUDA;  // device of the functions' tensors
  at::Tensor (*forward)(const at::Tensor& x, const at::Tensor& bias) = nullptr;
  // grad_out may be overwritten.
  GeluGradients (*backward)(const at::Tensor& grad_out, const at::Tensor& x, const at::Tensor& bias) = nullptr;
};

struct LeakyReluGradients {
  at::Tensor grad_x, grad_bias;
};

// Boxes are float32, float16 or bfloat16, channels-last without gaps; bias and its gradient float32.
struct DeviceLeakyRelu {
  c10::DeviceType device = c10::kCUDA;  // device of the functions' tensors
  void (*forward)(const at::Tensor& x, const at::Tensor& bias, double slope) = nullptr;
  LeakyReluGradients (*backward)(const at::Tensor& grad_out, const at::Tensor& out, double slope) = nullptr;
  // Sums over all dims but the channels, which are the last axis or those of a channels-last box: (channels) float32.
  at::Tensor (*column_sums)(const at::Tensor& values) = nullptr;
};

// Boxes and blocks are float32, float16 or bfloat16, channels-last without gaps (ops/arithmetic/box_blocks_kernel.h).
struct DeviceBlocks {
  c10::DeviceType device = c10::kCUDA;  // device of the functions' tensors
  at::Tensor (*to_blocks)(const at::Tensor& x) = nullptr;
  // bias (C) float32; undefined: no bias and no leaky ReLU. slope: of the leaky ReLU.
  at::Tensor (*from_blocks)(const at::Tensor& blocks, const at::Tensor& bias, double slope) = nullptr;
};

// Values that the backward pass needs from the forward pass.
struct NormState {
  at::Tensor sum;         // float32
  at::Tensor mean, rstd;  // (rows) float32
};
struct NormGradients {
  at::Tensor grad_x, grad_branch, grad_weight, grad_bias;
};

// All without gaps: x float32, branch and `normed` of one type, float32, float16 or bfloat16. Without a `branch` the sum
// is x itself, and there is no gradient of a branch. `of_sum` may be undefined.
struct DeviceNorm {
  c10::DeviceType device = c10::kCUDA;  // device of the functions' tensors
  at::Tensor (*forward)(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight, const at::Tensor& bias,
                        double epsilon, at::ScalarType type, NormState& state) = nullptr;
  NormGradients (*backward)(const at::Tensor& grad_normed, const at::Tensor& of_sum, const NormState& state,
                            const at::Tensor& weight, bool has_branch) = nullptr;
};

struct DeviceErrors {
  c10::DeviceType device = c10::kCUDA;  // device of the functions' tensors, of any strides
  at::Tensor (*forward)(const at::Tensor& prediction, const at::Tensor& target, ErrorKind kind, double rate) = nullptr;
  // grad_sums (B, 2) without gaps.
  at::Tensor (*backward)(const at::Tensor& grad_sums, const at::Tensor& prediction, const at::Tensor& target, ErrorKind kind,
                         double rate) = nullptr;
};

// All are () float32 on the runs' device.
struct UpdateScalars {
  at::Tensor rate;
  at::Tensor gradient_scale;  // factor of a gradient: 1 / loss scale, times the factor of clipping
  at::Tensor found_inf;       // 1: weights and states do not change
  at::Tensor steps;           // Adam: number of this update, from 1
};

struct DeviceUpdate {
  c10::DeviceType device = c10::kCUDA;  // device of the functions' tensors
  void (*adam)(const std::vector<UpdateSpan>& runs, const AdamSettings& settings, const UpdateScalars& scalars) = nullptr;
  void (*sgd)(const std::vector<UpdateSpan>& runs, const SgdSettings& settings, const UpdateScalars& scalars) = nullptr;
  // () float32 2-norm of all runs, which are on this device. Not finite if an element is not, or if an element's square exceeds
  // float32. The same bits in every run.
  at::Tensor (*norm)(const std::vector<FloatSpan>& runs, c10::Device device) = nullptr;
};

}  // namespace welkin::ops
