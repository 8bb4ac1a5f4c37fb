// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/elementwise/gelu_loops.h"

namespace welkin::ops {

const GeluKernels& gelu_kernels_portable() { return kGelu<4>; }

}  // namespace welkin::ops
