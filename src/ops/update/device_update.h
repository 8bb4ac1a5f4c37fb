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

// Whether the functions are there and take this tensor: dense float32 on their device.
bool device_update_supports(const at::Tensor& tensor);

// What the launches of a call work on. Empty runs are left out.
std::vector<UpdateTable> update_tables(const std::vector<UpdateSpan>& runs);
std::vector<UpdateTable> norm_tables(const std::vector<FloatSpan>& runs);

}  // namespace welkin::ops
