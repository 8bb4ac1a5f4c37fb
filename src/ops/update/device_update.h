// SPDX-License-Identifier: Apache-2.0
// Optimizer updates and the gradients' norm of many float32 tensors on a GPU, each in one pass over memory. It corresponds to
// ops/update/fused_update.h, but reads every number of a step on the device, so that the host does not wait, and a captured
// graph uses the current rate, scale and found_inf. The kernels are in libwelkin_cuda.so.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "ops/arithmetic/device_update_kernel.h"
#include "ops/update/fused_update.h"

namespace welkin::ops {

// True if the functions are loaded and take this tensor: dense float32 on their device.
bool device_update_supports(const at::Tensor& tensor);

// The tables of a call's launches. Empty runs are left out.
std::vector<UpdateTable> update_tables(const std::vector<UpdateSpan>& runs);
std::vector<UpdateTable> norm_tables(const std::vector<FloatSpan>& runs);

}  // namespace welkin::ops
