// SPDX-License-Identifier: Apache-2.0
// gelu(x + bias) on CPU tensors of float32 and bfloat16: the kernels of ops/cpu/elementwise/gelu_kernel.h, parallel over rows.
#pragma once

#include "ops/device/device_tables.h"

namespace welkin::ops {

const DeviceGelu& cpu_gelu();

}  // namespace welkin::ops
