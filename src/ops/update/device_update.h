// SPDX-License-Identifier: Apache-2.0
// Optimizer updates and the gradients' norm of many float32 tensors on a GPU, each in one pass over memory: the twin of
// ops/update/fused_update.h, with every number of a step read on the device, so that the host waits for nothing and a captured
// graph follows rate, scale and verdict. The kernels are in libwelkin_cuda.so.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "ops/arithmetic/device_update_kernel.h"
#include "ops/update/fused_update.h"

namespace welkin::ops {

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

// libwelkin_cuda.so registers its functions while it is loaded; all null before.
DeviceUpdate& device_update();

// Whether the functions are there and take this tensor: dense float32 on their device.
bool device_update_supports(const at::Tensor& tensor);

// What the launches of a call work on. Empty runs are left out.
std::vector<UpdateTable> update_tables(const std::vector<UpdateSpan>& runs);
std::vector<UpdateTable> norm_tables(const std::vector<FloatSpan>& runs);

}  // namespace welkin::ops
